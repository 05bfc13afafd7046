"""What is said of a failed replay above the verdict's line."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from gates import Complete, MakeRecord, entry

from evidence import detail, places
from evidence.question import Question
from evidence.record import Reason
from evidence.verdict import decide

FIRST = {
    "index": [0, 1, 2],
    "golden": 1.5,
    "golden_bits": "0x3e00",
    "got": 1.501953125,
    "got_bits": "0x3e02",
    "oracle": 1.50001,
}
GROUPS = [
    {"id": "fine", "first": None, "partial_difference": None},
    {"id": "3x64-8k-00", "first": None, "partial_difference": {"first_split": 4, "first_row": 1}},
    {"id": "6x256-8k-01", "first": FIRST, "partial_difference": None},
]
HOST = ("host", "sm_70")


def said(asked: Question, records: list[Any]) -> list[str]:
    return detail.of_failures(decide(asked, records), asked.candidate, records)


@pytest.fixture
def placed(unchanged: Question, monkeypatch: pytest.MonkeyPatch) -> Question:
    """The candidate lies in the store, and the shared environment runs."""
    monkeypatch.setattr(sys, "executable", str(places.root() / ".venv" / "bin" / "python"))
    where = {HOST: str(places.root() / "store" / "abc")}
    return replace(unchanged, candidate=replace(unchanged.candidate, places=where))


def test_group_element_values_and_command(
    placed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    failed = make_record(placed, entry("replay", *HOST), outcome="fail", results={"groups": GROUPS})
    assert said(placed, [*complete(placed), failed]) == [
        "replay host sm_70: group 6x256-8k-01: first differing element [0, 1, 2]: "
        "golden 1.5 (0x3e00), got 1.501953125 (0x3e02), oracle 1.50001",
        "  .venv/bin/python -m regression replay --backend host --arch sm_70 --artifact store/abc"
        " --locate 6x256-8k-01",
    ]


def test_partials_alone_are_located_too(
    placed: Question, complete: Complete, make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    failed = make_record(placed, entry("replay", *HOST), outcome="fail", results={"groups": GROUPS[:2]})
    first, second = said(placed, [*complete(placed), failed])
    assert first.endswith("group 3x64-8k-00: partials differ, first at split 4, row 1")
    assert second.startswith("  PYTHONPATH=.:kernels python -m regression replay ")


@pytest.mark.parametrize("results", [{}, {"groups": None}, {"groups": [None, {}, {"id": "x"}]}])
def test_a_failure_without_groups_says_no_more(
    results: dict[str, Any], placed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    reasons = (Reason(code="kernel-failed", text="no image"),)
    failed = make_record(placed, entry("replay", *HOST), outcome="fail", results=results, reasons=reasons)
    assert said(placed, [*complete(placed), failed]) == []
    assert said(placed, complete(placed)) == []


def test_records_that_do_not_count_are_no_news_beside_one_that_does(
    unchanged: Question, complete: Complete, make_record: MakeRecord
) -> None:
    stale = make_record(unchanged, entry("replay", *HOST), run_id="yesterday")
    assert decide(unchanged, [*complete(unchanged), stale]).notes == ()
