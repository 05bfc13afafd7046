"""All cases in as few processes as can be: one, and another after each case that ends its process."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evidence.record import Reason
from sanitizer.findings import Finding
from sanitizer.marks import Marks

MOST_PROCESSES = 64


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One process: what it left, what the tool found, and where its signs disagree."""

    names: tuple[str, ...]
    marks: Marks
    findings: tuple[Finding, ...] = ()
    problems: tuple[Reason, ...] = ()


# Runs these cases in a new process, with this empty folder for its files.
Launch = Callable[[tuple[str, ...], Path], Attempt]


def play(names: Sequence[str], launch: Launch, folder: Path) -> tuple[Attempt, ...]:
    """Run all cases; one that ends its process is left behind, and the rest go on in a new one."""
    attempts: list[Attempt] = []
    left = tuple(names)
    while left and len(attempts) < MOST_PROCESSES:
        attempt = launch(left, _new(folder, len(attempts), left))
        attempts += _isolated(attempt, launch, folder / f"{len(attempts)}")
        done = {*attempt.marks.ended, attempt.marks.open}
        if not done & set(left):
            break
        left = tuple(name for name in left if name not in done)
    return tuple(attempts)


def _isolated(attempt: Attempt, launch: Launch, folder: Path) -> list[Attempt]:
    """The attempt, and when it has findings of no known case, its cases again in halves."""
    ended = tuple(attempt.marks.ended)
    if len(ended) < 2 or all(finding.case for finding in attempt.findings):
        return [attempt]
    known = tuple(finding for finding in attempt.findings if finding.case)
    found = [replace(attempt, findings=known)]
    for number, part in enumerate((ended[: len(ended) // 2], ended[len(ended) // 2 :])):
        again = launch(part, _new(folder, number, part))
        found += _isolated(again, launch, folder / f"{number}")
    return found if any(one.findings for one in found[1:]) else [attempt]


def _new(folder: Path, number: int, names: Sequence[str]) -> Path:
    made = folder / f"{number}"
    made.mkdir(parents=True)
    (made / "cases.json").write_text(json.dumps(names))
    return made
