"""What a results folder holds that a graph won't show. Named every time, deleted never."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from artifacts import git
from benchmarks.history import commits, results
from benchmarks.history.results import File, ResultsError

SHOWN = 3


def complaints(root: Path, folder: Path) -> list[str]:
    """One line for each commit that history no longer reaches, damaged file, and other protocol."""
    found, lines = load(folder)
    return [*lines, *_unreachable(root, found), *_protocols(found, folder)]


def load(folder: Path) -> tuple[list[File], list[str]]:
    """All result files that can be read, and a line for each that can't."""
    found, lines = [], []
    for path in results.files(folder):
        try:
            found.append(results.read(path))
        except ResultsError as error:
            lines.append(f"unreadable: {error}")
    return found, lines


def take(other: Path, folder: Path) -> tuple[int, list[str]]:
    """Copy another machine's results into the folder; how many files, and a line for each that differs.

    Where both have a file, ours stays.

    The index of benchmarks is taken only where there is none: both machines have the same suites.
    """
    count, lines = 0, []
    for path in _all(other):
        target = folder / path.relative_to(other)
        if target.exists():
            if target.read_bytes() != path.read_bytes() and path.name not in (results.INDEX, results.MACHINE):
                lines.append(f"not taken, as it differs from what is here: {path}")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        results.write(target, path.read_bytes())
        count += 1
    return count, lines


def _all(folder: Path) -> Iterable[Path]:
    if not folder.is_dir():
        raise ResultsError(f"{folder}: no such folder")
    return [*sorted(folder.glob("*/*.json")), *sorted(folder.glob(results.INDEX))]


def _unreachable(root: Path, found: Iterable[File]) -> list[str]:
    if not git.is_repository(root):
        return []
    reachable = commits.drawn(root)
    gone = sorted({one.commit for one in found} - set(reachable))
    return [f"results kept but not drawn: {name[:12]} ({commits.whereabouts(root, name)})" for name in gone]


def _protocols(found: Iterable[File], folder: Path) -> list[str]:
    if not (folder / results.INDEX).exists():
        return []
    index = results.index(folder)
    lines = []
    for one in found:
        if names := results.foreign(one, index):
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            text = f"{', '.join(names[:SHOWN])}{more}"
            lines.append(
                f"results kept but not drawn: {one.commit[:12]} on {one.machine}: other protocol: {text}"
            )
    return lines
