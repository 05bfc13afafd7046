"""What holds of the verdict for all records: none missing, order irrelevant, failures final."""

from __future__ import annotations

from dataclasses import replace

from gates import Complete, MakeRecord
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidence.policy import POLICY
from evidence.question import Question, Side
from evidence.record import Reason
from evidence.verdict import decide

SAME_FIXTURE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
# Best first.
ORDER = ("admitted", "undecided", "unknown", "rejected")

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
