"""Trials of several runs, merged: how many there will be is declared before the first.

A name holds one study of each protocol, so that a report can set them side by side.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.abba import citation
from benchmarks.calibrate import trials
from benchmarks.calibrate.trials import Case, Trial
from evidence.record import Record


class StudyError(ValueError):
    """This run can't join the study; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """`declared` trials of each kind and context; `terms` are what all its runs must agree on.

    One of them is the protocol.
    """

    name: str
    declared: int
    terms: Mapping[str, Any]

    def earlier(self, records: Sequence[Record]) -> list[Trial]:
        """Trials of the earlier runs; StudyError when one was made on other terms, or all are there."""
        mine = named(records, self.name).get(self.terms["protocol"], [])
        for record in mine:
            self._check(record)
        found = trials_of(mine)
        if mine and self.missing(found) == 0:
            raise StudyError(f"study {self.name} has its {self.declared} trials; start one of another name")
        return found

    def missing(self, found: Sequence[Trial]) -> int:
        """How many trials of the kind and context with the fewest are still to come."""
        counts = Counter((trial.kind, trial.context) for trial in found)
        return max(0, self.declared - min(counts.values(), default=0))

    def turns(self, cases: Sequence[Case], earlier: Sequence[Trial], trials: int) -> list[Case]:
        """Kinds and contexts in turn, each `trials` times, but none beyond what was declared."""
        done = Counter((trial.kind, trial.context) for trial in earlier)
        return [
            case
            for turn in range(min(trials, self.declared))
            for case in cases
            if done[case.kind, case.context] + turn < self.declared
        ]

    def _check(self, record: Record) -> None:
        theirs = {**record.selection["terms"], "declared": record.selection["declared"]}
        ours = json.loads(json.dumps({**self.terms, "declared": self.declared}))
        other = sorted(name for name in ours if theirs.get(name) != ours[name])
        if other:
            raise StudyError(f"study {self.name} was begun with another {', '.join(other)}: use another name")


def named(records: Sequence[Record], name: str) -> dict[str, list[Record]]:
    """The records of a study by protocol."""
    found: dict[str, list[Record]] = {}
    for record in records:
        if record.kind == citation.KIND and record.selection.get("study") == name:
            found.setdefault(record.selection["terms"]["protocol"], []).append(record)
    return found


def by_terms(records: Sequence[Record], name: str) -> list[dict[str, list[Record]]]:
    """The studies of this name, each the records of equal terms by protocol; the newest is last.

    One without the engine's protocol comes before all that have it.
    """
    found: dict[str, list[Record]] = {}
    for record in (one for protocol in named(records, name).values() for one in protocol):
        terms = {**record.selection["terms"], "declared": record.selection["declared"], "protocol": None}
        found.setdefault(json.dumps(terms, sort_keys=True), []).append(record)
    newest_last = sorted(found.values(), key=lambda mine: max(record.started_at for record in mine))
    return sorted((named(mine, name) for mine in newest_last), key=lambda study: trials.ENGINE in study)


def title(records: Sequence[Record]) -> str:
    """What tells a study from others of its name."""
    stated = records[-1].selection
    digests, machine = _digests(stated["terms"]), stated["terms"].get("machine")
    return f"{digests}, {machine}, {stated['declared']} declared (record {records[-1].id[:12]})"


def _digests(terms: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {str(terms.get(name))[:12]}" for name in ("instrument", "code"))


def reopened(records: Sequence[Record]) -> Study:
    """The study of these records of one name and protocol; StudyError when their terms differ."""
    last = records[-1].selection
    study = Study(name=last["study"], declared=last["declared"], terms=last["terms"])
    for record in records:
        study._check(record)
    return study


def trials_of(records: Sequence[Record]) -> list[Trial]:
    """All their trials."""
    return [one for record in records for one in _trials(record)]


def _trials(record: Record) -> list[Trial]:
    """A record's trials, marked as those of its process."""
    found = (trials.from_json(value) for value in record.results["trials"])
    return [replace(one, process=record.id[:12]) for one in found]
