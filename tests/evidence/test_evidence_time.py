"""Changed CUDA code must be no slower: what a GPU's comparison in time does to a verdict."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evidence.policy import POLICY, Requirement
from evidence.question import Question
from evidence.record import Reason, Record
from evidence.verdict import decide

MakeRecord = Callable[..., Record]
Complete = Callable[[Question], list[Record]]


def needed(arch: str = "sm_90") -> Requirement:
    return next(entry for entry in POLICY if (entry.kind, entry.arch) == ("abba", arch))


def others(records: list[Record]) -> list[Record]:
    return [r for r in records if (r.kind, r.artifact.arch) != ("abba", "sm_90")]


@pytest.mark.parametrize(
    ("outcome", "code", "word"),
    [
        ("pass", "same", "admitted"),
        ("pass", "no-slower", "admitted"),
        ("fail", "slower", "rejected"),
        ("unknown", "time-undecided", "undecided"),
        ("unknown", "too-few-samples", "unknown"),
        ("unknown", "below-roofline", "unknown"),
    ],
)
def test_words(
    changed: Question, complete: Complete, make_record: MakeRecord, outcome: str, code: str, word: str
) -> None:
    reasons = (Reason(code=code, text="8192 q5 page 848"),)
    timed = make_record(changed, needed(), outcome=outcome, reasons=reasons)
    verdict = decide(changed, [*others(complete(changed)), timed])
    assert verdict.word == word
    if word != "admitted":
        assert verdict.line() == f"verdict: {word} ({code}: abba cuda sm_90: 8192 q5 page 848)"


def test_undecided_and_something_missing_is_unknown(
    changed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    reasons = (Reason(code="time-undecided", text="1 of 4"),)
    timed = make_record(changed, needed(), outcome="unknown", reasons=reasons)
    records = [r for r in others(complete(changed)) if r.kind != "static"]
    assert decide(changed, [*records, timed]).word == "unknown"


def test_a_loosened_or_foreign_comparison_does_not_count(
    changed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    base = make_record(changed, needed()).selection["base"]
    for selection in ({"plan": "other", "base": base}, {"plan": "standard", "base": "x"}, {"base": base}):
        timed = make_record(changed, needed(), selection=selection)
        assert decide(changed, [*others(complete(changed)), timed]).word == "unknown"


def test_the_headline_gives_the_command(changed: Question, complete: Complete) -> None:
    line = decide(changed, others(complete(changed))).line()
    command = "python -m benchmarks abba --backend cuda --arch sm_90 --base BASE --candidate CANDIDATE"
    assert f"needs gpu records: run {command} on a GPU machine" in line


def test_time_alone_proves_no_architecture(changed: Question, complete: Complete) -> None:
    records = [
        r
        for r in complete(changed)
        if (r.kind, r.artifact.arch) != ("replay", "sm_70") or not r.machine["gpus"]
    ]
    assert decide(changed, records).line() == "verdict: admitted (host + gpu sm_80, sm_90; sm_70 unproven)"
