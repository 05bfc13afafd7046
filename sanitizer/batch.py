"""All cases in as few processes as can be: one, and another after each case that ends its process."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evidence.record import Reason
from sanitizer.findings import Finding
from sanitizer.marks import Marks

CONTROL = "control:"
MOST_FAULTS = 12
MOST_SEARCHES = 24


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One process: what it left, what the tool found, and where its signs disagree."""

    names: tuple[str, ...]
    marks: Marks
    findings: tuple[Finding, ...] = ()
    problems: tuple[Reason, ...] = ()
    signs: str = ""


# Runs these cases in a new process, with this empty folder for its files.
Launch = Callable[[tuple[str, ...], Path], Attempt]
Tell = Callable[[str], object]


@dataclass(kw_only=True)
class Batch:
    """One run of a tool. After `most_faults` cases that ended their processes only controls go on; at most
    `searches` more processes are spent on finding which case a finding belongs to.
    """

    launch: Launch
    folder: Path
    tell: Tell = print
    most_faults: int = MOST_FAULTS
    searches: int = MOST_SEARCHES

    def play(self, names: Sequence[str]) -> tuple[Attempt, ...]:
        """Run all cases; one that ends its process is left behind, and the rest go on in a new one."""
        attempts: list[Attempt] = []
        left, faults = tuple(names), 0
        while left:
            attempt = self._launched(left, self.folder / f"{len(attempts)}")
            attempts += self._isolated(attempt, self.folder / f"{len(attempts)}")
            done = {*attempt.marks.ended, attempt.marks.open}
            if not done & set(left):
                break
            faults += self._told(attempt)
            left = tuple(
                name
                for name in left
                if name not in done and (faults < self.most_faults or name.startswith(CONTROL))
            )
        return tuple(attempts)

    def _told(self, attempt: Attempt) -> int:
        """1 when the process ended before its time, which is said at once: the rest may take minutes."""
        case = attempt.marks.open or "(no case)"
        if attempt.marks.finished or case.startswith(CONTROL):
            return 0
        found = next((f for f in attempt.findings if f.case == case), None)
        why = attempt.problems[0].text if attempt.problems else "no finding"
        self.tell(f"{case}: {f'{found.text} at {found.place}' if found else why}")
        return 1

    def _isolated(self, attempt: Attempt, folder: Path) -> list[Attempt]:
        """The attempt, and when it has findings of no known case, its cases again in halves."""
        ended = tuple(attempt.marks.ended)
        if len(ended) < 2 or self.searches < 2 or all(finding.case for finding in attempt.findings):
            return [attempt]
        self.searches -= 2
        known = tuple(finding for finding in attempt.findings if finding.case)
        found = [replace(attempt, findings=known)]
        for number, part in enumerate((ended[: len(ended) // 2], ended[len(ended) // 2 :])):
            again = self._launched(part, folder / f"{number}")
            found += self._isolated(again, folder / f"{number}")
        return found if any(one.findings for one in found[1:]) else [attempt]

    def _launched(self, names: tuple[str, ...], folder: Path) -> Attempt:
        folder.mkdir(parents=True)
        (folder / "cases.json").write_text(json.dumps(names))
        return self.launch(names, folder)
