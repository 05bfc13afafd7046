"""Which records count for a gate, and what is said of the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gates import Complete, MakeRecord, codes, entry, without

from evidence import policy
from evidence.instrument import Instrument
from evidence.question import Question
from evidence.record import Record
from evidence.verdict import decide


def test_gpu_records_of_any_run_and_file_count_by_code(changed: Question, complete: Complete) -> None:
    def elsewhere(record: Record) -> Record:
        other = replace(record.artifact, sha256="another link")
        return replace(record, run_id="nightly", artifact=other) if record.machine["gpus"] else record

    verdict = decide(changed, [elsewhere(record) for record in complete(changed)])
    assert verdict.word == "admitted"
    assert any("another link"[:12] in reason.text for reason in verdict.reasons)


STALE: dict[str, dict[str, Any]] = {
    "of another run": {"run_id": "yesterday"},
    "made with other inputs": {"inputs": "other"},
    "made by another version of the instrument": {"instrument": Instrument(version="1", digest="other")},
    "covering less than": {"selection": {"groups": "3x64-8k-00", "partials": True}},
}


@pytest.mark.parametrize("why", STALE)
def test_stale_records_do_not_count_and_are_said(
    why: str, unchanged: Question, complete: Complete, make_record: MakeRecord
) -> None:
    needed = entry("replay", "host", "sm_70")
    stale = make_record(unchanged, needed, **STALE[why])
    verdict = decide(unchanged, [*without(complete(unchanged), unchanged, needed), stale])
    assert codes(verdict) == ["stale-evidence"]
    assert why in verdict.reasons[0].text
    assert any(why in note for note in verdict.notes)


def test_records_of_a_tree_with_edits_do_not_count_for_a_clean_one(
    unchanged: Question, changed: Question, complete: Complete
) -> None:
    def edited(question: Question, *, on_gpu: bool) -> list[Record]:
        return [
            replace(r, artifact=replace(r.artifact, dirty=True)) if bool(r.machine["gpus"]) == on_gpu else r
            for r in complete(question)
        ]

    verdict = decide(unchanged, edited(unchanged, on_gpu=False))
    assert set(codes(verdict)) == {"stale-evidence"} and "differed from the commit" in verdict.reasons[0].text
    # A machine without git can't tell; there the instrument's digest is held.
    assert decide(changed, edited(changed, on_gpu=True)).word == "admitted"


def test_records_of_another_binary_are_said(unchanged: Question, complete: Complete) -> None:
    other = replace(unchanged, candidate=replace(unchanged.candidate, subjects=unchanged.base.subjects))
    records = [r for r in complete(other) if r.artifact.backend == "host"]
    assert "of another binary" in decide(unchanged, records).reasons[0].text


def test_gpu_record_without_a_gpu_does_not_count(
    changed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    needed = entry("replay", "cuda", "sm_90")
    records = [
        *without(complete(changed), changed, needed),
        make_record(changed, needed, machine={"gpus": []}),
    ]
    verdict = decide(changed, records)
    assert codes(verdict) == ["needs-gpu-records"]
    assert "without a GPU" in verdict.reasons[0].text


def test_static_costs_against_another_base_do_not_count(
    unchanged: Question, complete: Complete, make_record: MakeRecord
) -> None:
    needed = entry("static", "cuda", "sm_70")
    for selection in ({"base": "another"}, {"base": None}, {}):
        records = without(complete(unchanged), unchanged, needed)
        stale = make_record(unchanged, needed, selection=selection)
        assert codes(decide(unchanged, [*records, stale])) == ["stale-evidence"]


def test_all_groups_cover_core_but_not_the_reverse() -> None:
    assert policy.covers({"groups": "all", "partials": True}, {"groups": "core", "partials": True})
    assert not policy.covers({"groups": "core"}, {"groups": "all"})
    assert not policy.covers({"groups": "all", "partials": False}, {"groups": "core", "partials": True})
    assert not policy.covers({}, {"groups": "core"})


def test_failure_counts_however_little_was_covered(
    unchanged: Question, complete: Complete, make_record: MakeRecord
) -> None:
    one = make_record(
        unchanged, entry("replay", "host", "sm_70"), outcome="fail", selection={"groups": "3x64-8k-00"}
    )
    assert decide(unchanged, [*complete(unchanged), one]).word == "rejected"


def test_any_run_counts_when_none_is_asked_for(unchanged: Question, complete: Complete) -> None:
    records = [replace(record, run_id=f"run-{n}") for n, record in enumerate(complete(unchanged))]
    assert decide(unchanged, records).word == "unknown"
    assert decide(replace(unchanged, run_id=None), records).word == "admitted"


def test_gpu_records_made_through_another_python_layer_do_not_count(
    changed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    needed = entry("replay", "cuda", "sm_90")
    found = changed.candidate.find("cuda", "sm_90")
    assert found is not None
    for binding in ("older", None):
        stale = make_record(changed, needed, artifact=replace(found, binding=binding))
        verdict = decide(changed, [*without(complete(changed), changed, needed), stale])
        assert codes(verdict) == ["needs-gpu-records"]
        assert "Python layer" in verdict.reasons[0].text


def test_a_changed_python_layer_needs_a_gpu_too(unchanged: Question, complete: Complete) -> None:
    base = replace(unchanged.base, binding="older")
    asked = replace(unchanged, base=base)
    assert decide(asked, complete(unchanged)).word == "unknown"
    assert decide(asked, complete(asked)).line() == "verdict: admitted (host + gpu sm_70, sm_80, sm_90)"


def test_what_calls_no_library_counts_whatever_the_python_layer(
    unchanged: Question, complete: Complete, make_record: MakeRecord
) -> None:
    needed = entry("static", "cuda", "sm_70")
    found = unchanged.candidate.find("cuda", "sm_70")
    assert found is not None
    record = make_record(unchanged, needed, artifact=replace(found, binding="older"))
    assert decide(unchanged, [*without(complete(unchanged), unchanged, needed), record]).word == "admitted"


def test_a_foreign_base_has_no_static_costs_to_compare_with(
    unchanged: Question, complete: Complete, make_record: MakeRecord
) -> None:
    needed = entry("static", "cuda", "sm_80")
    foreign = tuple(replace(s, code_digest=None) for s in unchanged.base.subjects)
    asked = replace(unchanged, base=replace(unchanged.base, subjects=foreign))
    records = without(complete(asked), asked, needed)
    limits_alone = make_record(asked, needed, selection={"base": None})
    assert decide(asked, [*records, limits_alone]).word == "admitted"
    another = make_record(asked, needed, selection={"base": "x"})
    assert "against another base" in decide(asked, [*records, another]).reasons[0].text
