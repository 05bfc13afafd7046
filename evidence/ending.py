"""How every command ends: one line, one exit status, and a result where `--json` asks for it."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from evidence import places

# What a record says of a comparison in time, and where nothing but the word is known.
OUTCOMES = {"admitted": "pass", "rejected": "fail", "undecided": "unknown", "unknown": "unknown"}
EXIT_CODES = {"admitted": 0, "rejected": 1, "usage": 2, "undecided": 3, "unknown": 4, "error": 5}
# What a record says of a check, which only edits leave undecided: the verdict asks for those itself.
CHECKED = {
    "admitted": "pass",
    "undecided": "pass",
    "rejected": "fail",
    "usage": "unknown",
    "unknown": "unknown",
    "error": "error",
}
# What `evidence list` and `pack` write names of: records' files, and records.
RECORDS = re.compile(r"\d{8}T\d+-[\w.-]+\.json|[0-9a-f]{64}")
IMPORTED = frozenset({"added", "known", "refused"})
EXPLAINED = frozenset({"meaning", "advice"})
# What is told to whoever watches this process: a verdict's line, or the path of a record that was kept.
LINE, RECORD = "line", "record"

Check = Callable[[Path], bool]
Listener = Callable[[str, str], None]
_listeners: list[Listener] = []


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How one measurement ends: the word, a reason code and a sentence."""

    word: str
    code: str
    text: str


def prepare(path: Path | None, *, option: str = "--json", is_result: Check | None = None) -> str | None:
    """Why no result can be written there, or None. An earlier run's is deleted: it isn't this run's.

    Called before anything is measured. What isn't a result of this suite is never written over.
    """
    if path is None:
        return None
    if path.absolute().parent == places.records():
        return f"{option} {path} lies among the records, which stay as they are: choose another path"
    try:
        if os.path.lexists(path) and not (is_result or is_json_result)(path):
            return f"{option} {path} is no result of an earlier run: choose another path"
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        path.unlink()
    except OSError as error:
        return f"{option} {path}: {error.strerror}: choose another path"
    return None


def write(path: Path | None, value: Any) -> None:
    """Write a result as JSON, if a path was given."""
    if path is not None:
        path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def write_bare(path: Path | None, outcome: str | None, reasons: Sequence[tuple[str, str]]) -> None:
    """Write the outcome and its codes and texts alone, where the command had nothing more to write."""
    if path is not None and not path.exists():
        given = [{"code": code, "text": text} for code, text in reasons]
        write(path, {"outcome": outcome, "reasons": given})


def asked_for(arguments: Sequence[str]) -> Path | None:
    """Where `--json`, the last one, asks for a result in a command line that nobody has parsed yet."""
    found = None
    for one, following in itertools.pairwise([*arguments, ""]):
        option, equals, given = one.partition("=")
        if option == "--json":
            found = given if equals else following
    return Path(found) if found else None


def listen(listener: Listener) -> None:
    """From now on verdicts' lines go to this listener, not to the terminal; and records' paths as well."""
    _listeners.append(listener)


def say(line: str) -> None:
    """Print a verdict's line; in a process that is watched, its parent does: nothing can come after it."""
    if _listeners:
        _listeners[-1](LINE, line)
    else:
        print(line, flush=True)


def kept(path: Path) -> None:
    """Tell whoever watches this process of a record that it may have to withdraw."""
    if _listeners:
        _listeners[-1](RECORD, str(path.absolute()))


class Parser(argparse.ArgumentParser):
    """Options have one name each, and a mistake in them ends as every command does: line, status, result."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **{"allow_abbrev": False, **options})
        self._arguments: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's; keeps what was given."""
        self._arguments = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong; an earlier run's result isn't this one's."""
        self.print_usage(sys.stderr)
        path = asked_for(self._arguments)
        if path is not None and prepare(path) is None:
            write_bare(path, OUTCOMES["unknown"], [("usage", message)])
        raise SystemExit(end(Verdict(word="unknown", code="usage", text=message)))


def end(verdict: Verdict, path: Path | None = None) -> int:
    """Say the verdict's line, the command's last, and return the exit status."""
    write_bare(path, OUTCOMES[verdict.word], [(verdict.code, verdict.text)])
    say(f"verdict: {verdict.word} ({verdict.code}: {' '.join(verdict.text.split())})")
    return EXIT_CODES["usage" if verdict.code == "usage" else verdict.word]


def is_json_result(path: Path) -> bool:
    """Whether a file holds nothing, or what a command of this suite writes as JSON."""
    if not path.is_file():
        return False
    try:
        value = json.loads(path.read_bytes() or b"[]")
    except (OSError, ValueError, RecursionError):
        return False
    return all(map(_is_item, value)) if isinstance(value, list) else _is_result(value)


def _is_item(value: object) -> bool:
    return bool(RECORDS.fullmatch(value)) if isinstance(value, str) else _is_result(value)


def _is_result(value: object) -> bool:
    """A record, a bare outcome, a verdict, or what `evidence import` and `explain` say."""
    if not isinstance(value, dict) or not value:
        return False
    told = value.get("verdict")
    word = told.get("word") if isinstance(told, dict) else told
    return (
        _is_one_of(value.get("outcome"), CHECKED.values())
        or _is_one_of(word, EXIT_CODES)
        or value.keys() == IMPORTED
        or all(isinstance(entry, dict) and entry.keys() == EXPLAINED for entry in value.values())
    )


def _is_one_of(word: object, words: Any) -> bool:
    return isinstance(word, str) and word in words
