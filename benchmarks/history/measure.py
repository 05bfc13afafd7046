"""What the suites call: one command of the suite per class, its JSON, and why there is none.

Each command appends its own evidence record, with every raw sample; asv keeps the figures that are drawn.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SIDE_VARIABLE = "KERNELGATE_HISTORY_SIDE"
NOTES_VARIABLE = "KERNELGATE_HISTORY_NOTES"
RESULT = "result.json"  # in the folder that asv keeps for a class while it runs
TIMEOUT_S = 1800
MEASURED = (0, 3)  # admitted, or measured of a tree that differs from its commit: that is said elsewhere
JUDGED = (*MEASURED, 1)  # a rejection is a result too, where the figure says what was rejected


class UnmeasuredError(Exception):
    """There is no result; `code` and `text` say why. `skip`: this machine can't have one."""

    def __init__(self, code: str, text: str, *, skip: bool = False) -> None:
        super().__init__(f"{code}: {text}")
        self.code, self.text, self.skip = code, text, skip


def binary(backend: str, arch: str) -> Path:
    """The artifact folder of the commit that is being measured; UnmeasuredError when it has none."""
    side = json.loads(Path(os.environ[SIDE_VARIABLE]).read_text())
    for failure in side["failed"]:
        if (failure["backend"], failure["arch"]) == (backend, arch):
            raise UnmeasuredError("build-failed", failure["text"].splitlines()[0])
    for one in side["artifacts"]:
        if (one["backend"], one["arch"]) == (backend, arch):
            return Path(one["directory"] or one["library"])  # absolute: asv runs suites in folders of its own
    raise UnmeasuredError("no-binary", f"the commit came without a library for {backend} {arch}", skip=True)


def command(*arguments: str, codes: Sequence[int] = MEASURED) -> Any:
    """Run `python -m ARGUMENTS --json …` and return the JSON; UnmeasuredError with its verdict otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / RESULT
        line = [sys.executable, "-m", *arguments, "--json", str(path)]
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise UnmeasuredError("time-limit", f"{arguments[:2]} ran past {TIMEOUT_S} s") from error
        last = ((done.stdout.strip() or done.stderr.strip()).splitlines() or ["no message"])[-1]
        if done.returncode not in codes or not path.is_file():
            raise UnmeasuredError("not-measured", f"exit status {done.returncode}: {last}")
        return json.loads(path.read_text())


def keep(suite: str, take: Callable[[], Any]) -> None:
    """asv's setup_cache: call `take` once, keep what it returns, or why there is nothing."""
    Path(RESULT).write_text(json.dumps(_attempt(suite, take)))


def keep_each(suite: str, keys: Sequence[str], take: Callable[[str], Any]) -> None:
    """The same for each key: what one of them lacks, the others still have."""
    found = {key: _attempt(f"{suite} {key}", functools.partial(take, key)) for key in keys}
    Path(RESULT).write_text(json.dumps(found))


def _attempt(suite: str, take: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"value": take()}
    except UnmeasuredError as error:
        return _note(suite, error)
    except Exception as error:
        _note(suite, UnmeasuredError("machinery", f"{type(error).__name__}: {error}"))
        raise


def _note(suite: str, error: UnmeasuredError) -> dict[str, Any]:
    """For the runner, which prints it; asv would only say "failed"."""
    value = {"code": error.code, "text": error.text, "skip": error.skip}
    with Path(os.environ[NOTES_VARIABLE]).open("a") as notes:
        notes.write(json.dumps({"suite": suite, **value}) + "\n")
    return value


def kept(key: str | None = None) -> Any:
    """What `keep` kept, or `keep_each` for a key; asv's sign for "n/a" where this machine can't have it.

    UnmeasuredError where it should be there.
    """
    found = json.loads(Path(RESULT).read_text())
    one = found if key is None else found[key]
    if "value" in one:
        return one["value"]
    if one["skip"]:
        raise NotImplementedError(f"{one['code']}: {one['text']}")
    raise UnmeasuredError(one["code"], one["text"])


def samples(values: Sequence[float]) -> dict[str, Any]:
    """What makes asv keep all samples, and draw their median. It documents this nowhere: tested here."""
    return {"samples": list(values), "number": 1}
