"""Carries records between machines: one zip with an index of hashes. What differs is refused by name."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evidence import store
from evidence.record import Record, RecordError, dumps, parse

SCHEMA = 1
INDEX = "index.json"
MAX_RECORD_BYTES = 32 << 20
MAX_RECORDS = 10_000
# What zipfile raises over bytes that were damaged; recursion and unknown methods are RuntimeErrors.
DAMAGE = (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
_NAME = re.compile(r"records/[A-Za-z0-9][A-Za-z0-9_.-]*\.json")
_EPOCH = (1980, 1, 1, 0, 0, 0)


class PackError(ValueError):
    """The file isn't a pack of records, or its index is damaged: nothing was imported."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import did: files written, records that were there already, and what was refused and why."""

    added: tuple[Path, ...]
    known: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]


def write(records: Sequence[Record], out: Path) -> None:
    """Write a pack. FileExistsError when `out` exists: evidence is never overwritten."""
    texts = {f"records/{store.file_name(record)}": dumps(record).encode() for record in records}
    index = {"schema": SCHEMA, "files": {name: _sha256(data) for name, data in sorted(texts.items())}}
    with zipfile.ZipFile(out, "x", zipfile.ZIP_DEFLATED) as pack:
        for name, data in [(INDEX, json.dumps(index, indent=1).encode()), *sorted(texts.items())]:
            # A fixed date: equal records give equal packs.
            pack.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)


def read(path: Path, folder: Path | None = None) -> Imported:
    """Import a pack into the store; PackError when it can't be opened or has no sound index."""
    added: list[Path] = []
    known: list[str] = []
    refused: list[tuple[str, str]] = []
    present = {record.id for record in store.load(folder).records}
    for name, outcome in _members(path):
        if isinstance(outcome, str):
            refused.append((name, outcome))
        elif outcome.id in present:
            known.append(name)
        else:
            present.add(outcome.id)
            added.append(store.append(outcome, folder))
    return Imported(added=tuple(added), known=tuple(known), refused=tuple(refused))


def _members(path: Path) -> Iterator[tuple[str, Record | str]]:
    """(name, record or why it is refused) of everything in the pack and its index."""
    try:
        with zipfile.ZipFile(path) as pack:
            stated = _index(pack)
            names = [info.filename for info in pack.infolist() if info.filename != INDEX]
            for name in sorted({*names, *stated}):
                yield name, _member(pack, name, names.count(name), stated.get(name))
    except DAMAGE as error:
        raise PackError(f"{path}: not a readable pack ({error})") from error


def _member(pack: zipfile.ZipFile, name: str, copies: int, expected: str | None) -> Record | str:
    if _NAME.fullmatch(name) is None:
        return "a name that doesn't belong into a pack"
    if copies != 1 or expected is None:
        return "not in the index" if expected is None else f"{copies} copies of it in the pack"
    try:
        data = _bounded(pack, name)
    except DAMAGE as error:
        return f"damaged ({error})"
    if data is None:
        return f"larger than {MAX_RECORD_BYTES} bytes"
    return _record(name, data) if _sha256(data) == expected else "its bytes don't match the index"


def _record(name: str, data: bytes) -> Record | str:
    try:
        return parse(json.loads(data), name)
    except (RecordError, ValueError, RecursionError) as error:
        return str(error)


def _index(pack: zipfile.ZipFile) -> dict[str, str]:
    try:
        data = _bounded(pack, INDEX)
        value = json.loads(data or b"")
        files = value["files"]
    except (KeyError, ValueError, TypeError, *DAMAGE) as error:
        raise PackError(f"{pack.filename}: no readable {INDEX} ({error!r})") from error
    is_sound = isinstance(files, dict) and all(isinstance(item, str) for item in files.values())
    if value.get("schema") != SCHEMA or not is_sound or len(files) > MAX_RECORDS:
        raise PackError(f"{pack.filename}: its {INDEX} is not one that this version reads")
    return dict(files)


def _bounded(pack: zipfile.ZipFile, name: str) -> bytes | None:
    with pack.open(name) as stream:
        data = stream.read(MAX_RECORD_BYTES + 1)
    return data if len(data) <= MAX_RECORD_BYTES else None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
