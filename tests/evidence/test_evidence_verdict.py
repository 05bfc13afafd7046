"""The verdict: each gate passing and failing, and what holds for all of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidence import policy, reasons
from evidence.instrument import Instrument
from evidence.policy import POLICY, Requirement
from evidence.question import Question, Side
from evidence.record import Reason, Record
from evidence.verdict import Verdict, decide

MakeRecord = Callable[..., Record]
Complete = Callable[[Question], list[Record]]
SAME_FIXTURE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
# Best first.
ORDER = ("admitted", "undecided", "unknown", "rejected")


def codes(verdict: Verdict) -> list[str]:
    return [reason.code for reason in verdict.reasons]


def entry(kind: str, backend: str, arch: str, side: str = "candidate") -> Requirement:
    (found,) = [e for e in POLICY if (e.kind, e.backend, e.arch, e.side) == (kind, backend, arch, side)]
    return found


def without(records: list[Record], question: Question, gone: Requirement) -> list[Record]:
    """All records but those of one requirement, whatever binary they share."""
    owner = question.candidate if gone.side == "candidate" else question.base
    artifact = owner.find(gone.backend, gone.arch)
    return [r for r in records if not (r.kind == gone.kind and r.artifact == artifact)]


def test_unchanged_cuda_is_admitted_without_a_gpu(unchanged: Question, complete: Complete) -> None:
    verdict = decide(unchanged, complete(unchanged))
    assert verdict.line() == "verdict: admitted (host; cuda unchanged)"
    assert verdict.exit_code == 0


def test_changed_cuda_needs_gpu_records(changed: Question, complete: Complete) -> None:
    on_cpu = [record for record in complete(changed) if not record.machine["gpus"]]
    verdict = decide(changed, on_cpu)
    assert verdict.line().startswith("verdict: unknown (needs gpu records: run python -m regression replay")
    assert verdict.exit_code == 4
    assert set(codes(verdict)) == {"needs-gpu-records"}


def test_changed_cuda_with_gpu_records_is_admitted(changed: Question, complete: Complete) -> None:
    assert decide(changed, complete(changed)).line() == "verdict: admitted (host + gpu sm_70, sm_90)"


def only_differing(unchanged: Question, arch: str) -> Question:
    """The question with another code of one CUDA architecture."""
    subjects = tuple(
        replace(s, code_digest="another") if (s.backend, s.arch) == ("cuda", arch) else s
        for s in unchanged.candidate.subjects
    )
    return replace(unchanged, candidate=replace(unchanged.candidate, subjects=subjects))


def test_code_of_sm_70_alone_needs_a_gpu_of_its_own(unchanged: Question, complete: Complete) -> None:
    question = only_differing(unchanged, "sm_70")
    records = complete(question)
    assert decide(question, records).line() == "verdict: admitted (host + gpu sm_70)"
    without_v100 = [r for r in records if not r.machine["gpus"]]
    verdict = decide(question, without_v100)
    assert verdict.exit_code == 4 and "--arch sm_70" in verdict.line()


def test_a_change_of_both_is_proven_on_one_and_the_other_is_named(
    changed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    v100 = entry("replay", "cuda", "sm_70")
    h200_only = without(complete(changed), changed, v100)
    static = entry("static", "cuda", "sm_70")
    records = [*h200_only, make_record(changed, static)]
    assert decide(changed, records).line() == "verdict: admitted (host + gpu sm_90; sm_70 unproven)"
    failing = make_record(changed, v100, outcome="fail")
    assert decide(changed, [*records, failing]).word == "rejected"


def test_code_of_sm_90_alone_leaves_nothing_unproven(unchanged: Question, complete: Complete) -> None:
    question = only_differing(unchanged, "sm_90")
    assert decide(question, complete(question)).line() == "verdict: admitted (host + gpu sm_90)"


def test_renewed_goldens_are_said(unchanged: Question, complete: Complete, make_record: MakeRecord) -> None:
    base = entry("replay", "host", "sm_70", "base")
    kept = without(complete(unchanged), unchanged, base)
    differs = (Reason(code="bits-differ", text="3 of 200 groups"),)
    verdict = decide(unchanged, [*kept, make_record(unchanged, base, outcome="fail", reasons=differs)])
    assert verdict.word == "admitted"
    assert verdict.line().endswith("bits changed: accepted in CHANGELOG.md)")


def test_gpu_records_of_any_run_and_file_count_by_code(changed: Question, complete: Complete) -> None:
    def elsewhere(record: Record) -> Record:
        other = replace(record.artifact, sha256="another link")
        return replace(record, run_id="nightly", artifact=other) if record.machine["gpus"] else record

    verdict = decide(changed, [elsewhere(record) for record in complete(changed)])
    assert verdict.word == "admitted"
    assert any("another link"[:12] in reason.text for reason in verdict.reasons)


@pytest.mark.parametrize("gone", POLICY, ids=lambda e: e.name)
def test_every_requirement_is_needed(
    gone: Requirement, changed: Question, unchanged: Question, complete: Complete
) -> None:
    asked = only_differing(unchanged, gone.arch) if gone.on_gpu else changed
    verdict = decide(asked, without(complete(asked), asked, gone))
    assert verdict.word == "unknown"
    assert any(gone.name in reason.text for reason in verdict.reasons)


@pytest.mark.parametrize("failing", [e for e in POLICY if not e.control], ids=lambda e: e.name)
def test_every_failure_rejects(
    failing: Requirement, changed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    bad = make_record(changed, failing, outcome="fail")
    for records in ([*complete(changed), bad], [bad], [*without(complete(changed), changed, failing), bad]):
        verdict = decide(changed, records)
        assert verdict.line().startswith(f"verdict: rejected (bits-differ: {failing.name}: 3 groups")
        assert verdict.exit_code == 1


@pytest.mark.parametrize("outcome", ["error", "unknown"])
@pytest.mark.parametrize("broken", POLICY, ids=lambda e: e.name)
def test_errors_never_pass(
    outcome: str, broken: Requirement, changed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    bad = make_record(changed, broken, outcome=outcome)
    assert decide(changed, [*without(complete(changed), changed, broken), bad]).word == "unknown"


def test_base_that_fails_too_blames_the_machine(
    unchanged: Question, complete: Complete, make_record: MakeRecord
) -> None:
    both = [
        make_record(unchanged, entry("replay", "host", "sm_70", side), outcome="fail")
        for side in ("candidate", "base")
    ]
    verdict = decide(unchanged, [*complete(unchanged), *both])
    assert verdict.word == "unknown"
    assert codes(verdict)[0] == "base-fails-too"


def test_base_failing_elsewhere_excuses_nothing(
    unchanged: Question, complete: Complete, make_record: MakeRecord
) -> None:
    both = [
        make_record(unchanged, entry("replay", "host", "sm_70"), outcome="fail"),
        make_record(unchanged, entry("replay", "host", "sm_90", "base"), outcome="fail"),
    ]
    assert decide(unchanged, [*complete(unchanged), *both]).word == "rejected"


def test_base_failing_alone_is_noted(
    unchanged: Question, complete: Complete, make_record: MakeRecord
) -> None:
    control = entry("replay", "host", "sm_70", "base")
    records = without(complete(unchanged), unchanged, control)
    verdict = decide(unchanged, [*records, make_record(unchanged, control, outcome="fail")])
    assert verdict.word == "admitted"
    assert any("on purpose" in note for note in verdict.notes)


def test_equal_binaries_need_one_replay(unchanged: Question, complete: Complete) -> None:
    same = replace(unchanged, base=replace(unchanged.base, subjects=unchanged.candidate.subjects))
    assert decide(same, complete(same)[:2] + complete(same)[4:]).word == "admitted"


def test_dirty_tree_is_measured_never_admitted(unchanged: Question, complete: Complete) -> None:
    dirty = replace(unchanged, candidate=replace(unchanged.candidate, dirty=("a.cc", "b.cc")))
    verdict = decide(dirty, complete(unchanged))
    assert verdict.line().startswith("verdict: undecided (dirty-tree: a.cc, b.cc; ")
    assert verdict.exit_code == 3
    assert decide(dirty, []).word == "unknown"


def test_candidate_without_revision_is_unknown(unchanged: Question, complete: Complete) -> None:
    nameless = replace(unchanged, candidate=replace(unchanged.candidate, revision=None))
    assert codes(decide(nameless, complete(unchanged))) == ["no-revision"]


def test_missing_base_is_named(unchanged: Question, complete: Complete) -> None:
    missing = Reason(code="shallow-clone", text="history was cut off")
    lonely = replace(unchanged, base=Side(missing=missing))
    verdict = decide(lonely, complete(unchanged))
    assert verdict.line().startswith("verdict: unknown (shallow-clone: history was cut off")
    assert "no-binary" not in codes(verdict)


def test_candidate_that_did_not_build_is_unknown(unchanged: Question, complete: Complete) -> None:
    reason = Reason(code="build-failed", text="cuda sm_80: log at x")
    broken = replace(unchanged, candidate=replace(unchanged.candidate, failed={("cuda", "sm_80"): reason}))
    assert codes(decide(broken, complete(unchanged))) == ["build-failed"]


def test_base_that_did_not_build_says_why(unchanged: Question, complete: Complete) -> None:
    reason = Reason(code="build-failed", text="host sm_70: log at x")
    kept = tuple(s for s in unchanged.base.subjects if s.label != "host sm_70")
    broken = replace(
        unchanged, base=replace(unchanged.base, subjects=kept, failed={("host", "sm_70"): reason})
    )
    assert codes(decide(broken, complete(unchanged))) == ["build-failed"]


def test_base_of_one_library_is_control_enough(changed: Question, complete: Complete) -> None:
    one = tuple(replace(s, code_digest=None) for s in changed.base.subjects if s.label == "host sm_90")
    single = replace(changed, base=replace(changed.base, subjects=one))
    assert decide(single, complete(single)).line() == "verdict: admitted (host + gpu sm_70, sm_90)"
    none = replace(changed, base=replace(changed.base, subjects=()))
    assert decide(none, complete(changed)).word == "unknown"


def test_base_without_cuda_means_that_cuda_differs(unchanged: Question) -> None:
    hosts = tuple(s for s in unchanged.base.subjects if s.backend == "host")
    assert policy.differing(replace(unchanged, base=replace(unchanged.base, subjects=hosts)))
    foreign = tuple(replace(s, code_digest=None) for s in unchanged.candidate.subjects)
    assert policy.differing(replace(unchanged, candidate=replace(unchanged.candidate, subjects=foreign)))
    assert not policy.differing(unchanged)


def test_unreadable_records_make_it_unknown(unchanged: Question, complete: Complete) -> None:
    verdict = decide(unchanged, complete(unchanged), unreadable=["x.json: cut short"])
    assert verdict.line() == "verdict: unknown (unreadable-record: x.json: cut short)"


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


def test_a_later_gate_is_one_more_entry(unchanged: Question, complete: Complete) -> None:
    extra = Requirement(kind="abba", backend="host", arch="sm_70", command="measure")
    verdict = decide(unchanged, complete(unchanged), policy=(*POLICY, extra))
    assert verdict.word == "unknown"
    assert "abba host sm_70" in verdict.reasons[0].text


PICKS = st.sets(st.integers(0, 7))


@SAME_FIXTURE
@given(picks=PICKS)
def test_missing_evidence_never_admits(picks: set[int], changed: Question, complete: Complete) -> None:
    records = complete(changed)
    kept = [record for n, record in enumerate(records) if n in picks]
    assert (decide(changed, kept).word == "admitted") == (len(kept) == len(records))


@SAME_FIXTURE
@given(picks=PICKS, which=st.integers(0, 100), dirty=st.booleans(), data=st.data())
def test_adding_a_failing_record_never_improves(
    picks: set[int],
    which: int,
    dirty: bool,
    data: st.DataObject,
    changed: Question,
    complete: Complete,
    make_record: MakeRecord,
) -> None:
    question = replace(changed, candidate=replace(changed.candidate, dirty=("x",) if dirty else ()))
    kept = [record for n, record in enumerate(complete(changed)) if n in picks]
    candidates = [e for e in POLICY if not e.control]
    failing = make_record(changed, candidates[which % len(candidates)], outcome="fail")
    before, after = decide(question, kept), decide(question, [*kept, failing])
    assert ORDER.index(after.word) >= ORDER.index(before.word)
    control = make_record(
        changed, data.draw(st.sampled_from([e for e in POLICY if e.control])), outcome="fail"
    )
    assert decide(question, [*kept, failing, control]).word != "admitted"


@SAME_FIXTURE
@given(data=st.data())
def test_order_and_repetition_do_not_matter(
    data: st.DataObject, changed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    outcomes = st.sampled_from(["pass", "fail", "error", "unknown"])
    records = [
        make_record(
            changed, data.draw(st.sampled_from(POLICY)), outcome=data.draw(outcomes), duration_s=float(n)
        )
        for n in range(data.draw(st.integers(0, 6)))
    ]
    everything = [*complete(changed), *records]
    shuffled = data.draw(st.permutations(everything))
    assert decide(changed, everything) == decide(changed, shuffled)
    assert decide(changed, [*shuffled, *shuffled]).line() == decide(changed, everything).line()


@SAME_FIXTURE
@given(text=st.text())
def test_the_last_line_is_one_line(text: str, unchanged: Question) -> None:
    missing = replace(unchanged, base=Side(missing=Reason(code="x", text=text)))
    assert len(decide(missing, []).line().splitlines()) == 1


def test_every_code_of_the_verdict_is_explained(unchanged: Question, complete: Complete) -> None:
    for records in ([], complete(unchanged)):
        for reason in decide(unchanged, records).reasons:
            assert reasons.explain(reason.code) is not None, reason.code


def test_verdict_needs_neither_torch_nor_numpy() -> None:
    script = (
        "import sys, evidence.verdict; print([m for m in ('torch', 'numpy', 'tvm_ffi') if m in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
