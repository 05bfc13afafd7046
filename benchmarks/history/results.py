"""asv's result files: what they hold, what is missing from them, and that nothing in them is lost."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INDEX, MACHINE = "benchmarks.json", "machine.json"
MEASURED, SKIPPED, FAILED = "measured", "skipped", "failed"


class ResultsError(Exception):
    """A file of the results folder can't be read; the message names it."""


@dataclass(frozen=True, kw_only=True)
class File:
    """One commit on one machine, as asv keeps it."""

    path: Path
    commit: str
    rows: Mapping[str, Mapping[str, Any]]

    @property
    def machine(self) -> str:
        """The machine's key."""
        return self.path.parent.name


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Names of single results (benchmark and parameters) by what became of them."""

    measured: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """True when something was measured and nothing failed."""
        return bool(self.measured) and not self.failed


def read(path: Path) -> File:
    """One result file; ResultsError when it is damaged."""
    value = _json(path)
    try:
        columns = value["result_columns"]
        rows = {name: dict(zip(columns, row, strict=False)) for name, row in value["results"].items()}
        return File(path=path, commit=value["commit_hash"], rows=rows)
    except (KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"{path}: not a result file ({error!r})") from error


def files(folder: Path) -> Iterator[Path]:
    """Every result file below the folder, sorted."""
    names = (INDEX, MACHINE)
    return (path for path in sorted(folder.glob("*/*.json")) if path.name not in names)


def index(folder: Path) -> dict[str, Any]:
    """The benchmarks that asv last ran there, by name."""
    found = _json(folder / INDEX)
    return {name: entry for name, entry in found.items() if isinstance(entry, dict)}


def tally(found: File | None, benchmarks: Mapping[str, Any]) -> Tally:
    """What became of every single result that `benchmarks` promises."""
    states: dict[str, list[str]] = {MEASURED: [], SKIPPED: [], FAILED: []}
    for name, benchmark in benchmarks.items():
        row = found.rows.get(name, {}) if found else {}
        values = _values(row, benchmark)
        for params in itertools.product(*benchmark["params"]):
            states[_state(values.get(params))].append(f"{name}({', '.join(params)})")
    return Tally(**{state: tuple(names) for state, names in states.items()})


def foreign(found: File, benchmarks: Mapping[str, Any]) -> list[str]:
    """Benchmarks of a file that are of another protocol, or that the suites no longer have."""
    return [name for name, row in found.rows.items() if not _is_current(row, benchmarks.get(name))]


def has_number(found: File, name: str) -> bool:
    """True when at least one result of a benchmark is there."""
    return any(_state(value) == MEASURED for value in found.rows.get(name, {}).get("result") or [])


def keep_superseded(path: Path, before: bytes | None) -> Path | None:
    """Keep a file whose results a run of another protocol has just replaced; asv would only forget them."""
    if before is None or not path.exists():
        return None
    old, new = _versions(json.loads(before)), _versions(_json(path))
    if all(new.get(name) == version for name, version in old.items()):
        return None
    digest = hashlib.sha256(before).hexdigest()[:12]
    kept = path.with_suffix(f".{digest}.superseded")
    write(kept, before)
    return kept


def restore_lost(path: Path, before: bytes | None) -> list[str]:
    """Put back what a file held before, where a new run lost a value; return what the new run lost."""
    if before is None or not path.exists():
        return []
    old = json.loads(before)
    lost = _lost(old, _json(path))
    if lost:
        shutil.copyfile(path, path.with_suffix(".incomplete"))
        write(path, before)
    return lost


def write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)


def _versions(value: Mapping[str, Any]) -> dict[str, Any]:
    column = value["result_columns"].index("version")
    return {name: row[column] for name, row in value["results"].items() if len(row) > column}


def _lost(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    column = old["result_columns"].index("result")
    return [
        name
        for name, row in old["results"].items()
        if len(_numbers(row, column)) > len(_numbers(new["results"].get(name, []), column))
    ]


def _numbers(row: Sequence[Any], column: int) -> list[float]:
    values = row[column] if len(row) > column else None
    return [value for value in values or [] if _state(value) == MEASURED]


def _values(row: Mapping[str, Any], benchmark: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    if not _is_current(row, benchmark):
        return {}
    return dict(zip(itertools.product(*row["params"]), row["result"] or [], strict=False))


def _is_current(row: Mapping[str, Any], benchmark: Mapping[str, Any] | None) -> bool:
    return bool(row) and benchmark is not None and row.get("version") == benchmark["version"]


def _state(value: Any) -> str:
    """asv writes NaN for what a suite declined, null for what failed."""
    if not isinstance(value, int | float):
        return FAILED
    return SKIPPED if math.isnan(value) else MEASURED


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise ResultsError(f"{path}: not an object")
    return value
