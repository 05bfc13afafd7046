"""The record store: one JSON file per record, written whole or not at all, never overwritten."""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from evidence import ending, places
from evidence.record import Record, RecordError, dumps, parse


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """A file of the store that is not a whole record, and why."""

    path: Path
    why: str


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """All records by time, and every file that could not be read: those are never skipped silently."""

    records: tuple[Record, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


def trouble(folder: Path | None = None) -> str | None:
    """Why no record could be kept there, or None: to be known before anything is measured."""
    wanted = folder or places.records()
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=wanted):
            return None
    except OSError as error:
        return f"{wanted}: {error.strerror}: set ${places.HOME_VARIABLE} to a folder that can be written"


def append(record: Record, folder: Path | None = None) -> Path:
    """Write a record and return its path. The same record again is kept once; nothing is ever overwritten."""
    target = (folder or places.records()) / file_name(record)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=".new-") as stream:
        stream.write(dumps(record))
        stream.flush()
        os.fsync(stream.fileno())
        try:
            # A link fails where a rename would overwrite.
            os.link(stream.name, target)
        except FileExistsError:
            _check_same(target, record)
        else:
            ending.kept(target)
    return target


def load(folder: Path | None = None) -> Loaded:
    """Every record of the store."""
    records, unreadable = [], []
    for path in sorted((folder or places.records()).glob("*.json")):
        try:
            records.append(read(path))
        except RecordError as error:
            unreadable.append(Unreadable(path=path, why=str(error)))
    ordered = sorted({record.id: record for record in records}.values(), key=lambda r: (r.started_at, r.id))
    return Loaded(records=tuple(ordered), unreadable=tuple(unreadable))


def read(path: Path) -> Record:
    """One record's file; RecordError when it is not a whole record."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"{path.name}: {error}") from error
    return parse(value, path.name)


def file_name(record: Record) -> str:
    """Sortable by time, readable, unique by content."""
    stamp = re.sub(r"[^0-9T]", "", record.started_at.split("+", 1)[0])
    words = "-".join(re.sub(r"[^A-Za-z0-9_.]", "_", word) for word in (record.kind, *_target(record)))
    return f"{stamp}-{words}-{record.id[:16]}.json"


def _target(record: Record) -> tuple[str, str]:
    return record.artifact.backend, record.artifact.arch


def _check_same(target: Path, record: Record) -> None:
    if read(target).id != record.id:
        raise RecordError(f"{target.name}: there is another record of that name; nothing was written")
