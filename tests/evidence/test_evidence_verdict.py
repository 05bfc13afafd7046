"""The verdict: each gate passing and failing, and what is said."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from gates import Complete, MakeRecord, codes, entry, only_differing, without

from evidence import policy, reasons
from evidence.policy import POLICY, Requirement
from evidence.question import Question, Side
from evidence.record import Reason
from evidence.verdict import decide


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
    assert decide(changed, complete(changed)).line() == "verdict: admitted (host + gpu sm_70, sm_80, sm_90)"


def test_code_of_sm_70_alone_needs_a_gpu_of_its_own(unchanged: Question, complete: Complete) -> None:
    question = only_differing(unchanged, "sm_70")
    records = complete(question)
    assert decide(question, records).line() == "verdict: admitted (host + gpu sm_70)"
    without_v100 = [r for r in records if not r.machine["gpus"]]
    verdict = decide(question, without_v100)
    assert verdict.exit_code == 4 and "--arch sm_70" in verdict.line()


def test_a_change_of_all_is_proven_on_one_and_the_others_are_named(
    changed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    v100 = entry("replay", "cuda", "sm_70")
    without_v100 = without(complete(changed), changed, v100)
    records = without(without_v100, changed, entry("replay", "cuda", "sm_80"))
    assert decide(changed, records).line() == "verdict: admitted (host + gpu sm_90; sm_70, sm_80 unproven)"
    failing = make_record(changed, v100, outcome="fail")
    assert decide(changed, [*records, failing]).word == "rejected"


def test_code_of_sm_90_alone_leaves_nothing_unproven(unchanged: Question, complete: Complete) -> None:
    question = only_differing(unchanged, "sm_90")
    assert decide(question, complete(question)).line() == "verdict: admitted (host + gpu sm_90)"


def test_renewed_goldens_are_said(unchanged: Question, complete: Complete, make_record: MakeRecord) -> None:
    base = entry("replay", "host", "sm_70", "base")
    kept = without(complete(unchanged), unchanged, base)
    differs = (Reason(code="bits-differ", text="3 of 200 groups"),)
    records = [*kept, make_record(unchanged, base, outcome="fail", reasons=differs)]
    why = "sm_70, bits changed: accepted because the sum is a tree now"
    renewed = replace(unchanged, candidate=replace(unchanged.candidate, accepted=("sm_70, old", why)))
    renewed = replace(renewed, base=replace(renewed.base, accepted=("sm_70, old",)))
    verdict = decide(renewed, records)
    assert verdict.word == "admitted"
    assert verdict.line().endswith("; bits changed: accepted because the sum is a tree now)")
    for unexplained in (
        unchanged,
        replace(renewed, base=replace(renewed.base, accepted=renewed.candidate.accepted)),
        replace(renewed, candidate=replace(renewed.candidate, accepted=(why.replace("70", "90"),))),
    ):
        verdict = decide(unexplained, records)
        assert (verdict.word, verdict.reasons[0].code) == ("unknown", "bits-unexplained")


NEEDED = [entry for entry in POLICY if not entry.optional]


@pytest.mark.parametrize("gone", NEEDED, ids=lambda e: e.name)
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
@pytest.mark.parametrize("broken", NEEDED, ids=lambda e: e.name)
def test_errors_never_pass(
    outcome: str, broken: Requirement, changed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    bad = make_record(changed, broken, outcome=outcome)
    assert decide(changed, [*without(complete(changed), changed, broken), bad]).word == "unknown"


@pytest.mark.parametrize("outcome", ["error", "unknown", None])
def test_nothing_waits_for_what_is_optional(
    outcome: str | None, changed: Question, complete: Complete, make_record: MakeRecord
) -> None:
    emulation = entry("emulation", "cuda", "sm_90", "candidate")
    bad = [] if outcome is None else [make_record(changed, emulation, outcome=outcome)]
    verdict = decide(changed, [*without(complete(changed), changed, emulation), *bad])
    assert verdict.word == "admitted"
    assert any(note.startswith("emulation cuda sm_90 would be welcome: ") for note in verdict.notes)
    assert not any("welcome" in note for note in decide(changed, complete(changed)).notes)


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
    explained = replace(unchanged.candidate, accepted=("sm_70, bits changed: accepted because so",))
    question = replace(unchanged, candidate=explained)
    verdict = decide(question, [*records, make_record(question, control, outcome="fail")])
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
    assert decide(single, complete(single)).line() == "verdict: admitted (host + gpu sm_70, sm_80, sm_90)"
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


def test_a_later_gate_is_one_more_entry(unchanged: Question, complete: Complete) -> None:
    extra = Requirement(kind="abba", backend="host", arch="sm_70", command="measure")
    verdict = decide(unchanged, complete(unchanged), policy=(*POLICY, extra))
    assert verdict.word == "unknown"
    assert "abba host sm_70" in verdict.reasons[0].text


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
