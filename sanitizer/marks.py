"""Marks that a run leaves in a file before and after each case, so that what kills it can be named."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Marks:
    """`ended` maps a case to its complaint or None, in order. `open` is the case that began and didn't end;
    `finished`: the run reached its own end. `trouble` is why the run could not start. `notes` are what was
    measured in a case.
    """

    ended: Mapping[str, str | None] = field(default_factory=dict)
    open: str | None = None
    finished: bool = False
    trouble: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


class Writer:
    """Appends marks, each on disk before the next step."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        self._owner = os.getpid()

    def write(self, event: str, **fields: object) -> None:
        """One mark; none from a copy of the process that a kernel forked."""
        if os.getpid() != self._owner:
            return
        os.write(self._file, f"{json.dumps({'event': event, **fields})}\n".encode())
        os.fsync(self._file)


def read(path: Path) -> Marks:
    """What a run left; an unreadable line, as a dying process may leave, ends the reading."""
    ended: dict[str, str | None] = {}
    notes: dict[str, str] = {}
    current, finished, trouble = None, False, None
    for mark in _lines(path):
        match mark:
            case {"event": "begin", "case": str(name)}:
                current = name
            case {"event": "end", "case": str(name), "complaint": complaint} if name == current:
                ended[name], current = complaint, None
            case {"event": "finished"}:
                finished = current is None
            case {"event": "trouble", "text": str(text)}:
                trouble = text
            case {"event": "note", "case": str(name), "text": str(text)}:
                notes[name] = text
    return Marks(ended=ended, open=current, finished=finished, trouble=trouble, notes=notes)


def _lines(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found
