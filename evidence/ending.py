"""How every command ends: one line, one exit status, and a result where `--json` asks for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What a record says of a comparison in time, and where nothing but the word is known.
OUTCOMES = {"admitted": "pass", "rejected": "fail", "undecided": "unknown", "unknown": "unknown"}
EXIT_CODES = {"admitted": 0, "rejected": 1, "usage": 2, "undecided": 3, "unknown": 4, "error": 5}
# What a record says of a check, which only edits leave undecided: the verdict asks for those itself.
CHECKED = {
    "admitted": "pass",
    "undecided": "pass",
    "rejected": "fail",
    "unknown": "unknown",
    "error": "error",
}
# What a result has at its top, one of them; lists are results too.
KEYS = frozenset({"outcome", "verdict", "added"})

Check = Callable[[Path], bool]


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
    try:
        if path.exists() and not (is_result or is_json_result)(path):
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


def write_bare(
    path: Path | None, outcome: str | None, reasons: Sequence[tuple[str, str]], *, over: bool = False
) -> None:
    """Write the outcome and its codes and texts alone, where the command had nothing more to write."""
    if path is not None and (over or not path.exists()):
        given = [{"code": code, "text": text} for code, text in reasons]
        write(path, {"outcome": outcome, "reasons": given})


def asked_for(arguments: Sequence[str]) -> Path | None:
    """Where `--json` asks for a result, in a command line that nobody has parsed yet."""
    for one, following in zip(arguments, [*arguments[1:], ""], strict=True):
        option, equals, given = one.partition("=")
        if option == "--json":
            return Path(given if equals else following) if given or following else None
    return None


def end(verdict: Verdict, path: Path | None = None) -> int:
    """Print the verdict's line, the command's last, and return the exit status."""
    write_bare(path, OUTCOMES[verdict.word], [(verdict.code, verdict.text)])
    print(f"verdict: {verdict.word} ({verdict.code}: {' '.join(verdict.text.split())})", flush=True)
    return EXIT_CODES["usage" if verdict.code == "usage" else verdict.word]


def is_json_result(path: Path) -> bool:
    """Whether a file holds nothing, or what a command of this suite writes as JSON."""
    if not path.is_file():
        return False
    try:
        value = json.loads(path.read_bytes() or b"[]")
    except (OSError, ValueError):
        return False
    items = value if isinstance(value, list) else [value]
    return all(isinstance(one, dict) and not KEYS.isdisjoint(one) for one in items) or _are_names(value)


def _are_names(value: object) -> bool:
    """Whether it is what `evidence list` and `pack` write: ids and names of records."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
