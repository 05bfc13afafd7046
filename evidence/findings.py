"""One requirement held against all records: which count, which are stale and why, and what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evidence.policy import Requirement, covers
from evidence.question import Question, Side
from evidence.record import Reason, Record, Subject

PASS, FAIL, MISSING, INCONCLUSIVE = "pass", "fail", "missing", "inconclusive"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`records` are the ids that decided; `stale` says of other records why they didn't count."""

    requirement: Requirement
    state: str
    reason: Reason
    records: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True when fresh evidence says so."""
        return self.state == PASS


def find(requirement: Requirement, question: Question, records: Iterable[Record]) -> Finding:
    """The finding for one requirement; the records' order doesn't matter."""
    side = question.candidate if requirement.side == "candidate" else question.base
    subject = side.find(requirement.backend, requirement.arch)
    if subject is None:
        return Finding(requirement=requirement, state=MISSING, reason=_no_binary(requirement, side))
    related = sorted((r for r in records if _is_related(r, requirement)), key=lambda record: record.id)
    obstacles = {record.id: _obstacle(record, requirement, question, subject) for record in related}
    fresh = [record for record in related if obstacles[record.id] is None]
    stale = Counter(why for why in obstacles.values() if why is not None)
    said = tuple(f"{count} {why}" for why, count in sorted(stale.items()))
    if not fresh:
        bound = question.run_id is not None and not requirement.on_gpu
        missing = _missing(requirement, said, bound=bound)
        return Finding(requirement=requirement, state=MISSING, reason=missing, stale=said)
    return _conclude(requirement, subject, fresh, said)


def same_binary(one: Subject, other: Subject) -> bool:
    """Equal code where both have a code digest, else the same file."""
    if (one.backend, one.arch) != (other.backend, other.arch):
        return False
    if one.code_digest is not None and other.code_digest is not None:
        return one.code_digest == other.code_digest
    return one.sha256 == other.sha256


def _is_related(record: Record, requirement: Requirement) -> bool:
    wanted = (requirement.kind, requirement.backend, requirement.arch)
    return (record.kind, record.artifact.backend, record.artifact.arch) == wanted


def _obstacle(record: Record, requirement: Requirement, question: Question, subject: Subject) -> str | None:
    """Why a record doesn't count, in words that complete "2 …"; None when it does."""
    if not same_binary(record.artifact, subject):
        return "of another binary"
    if record.instrument.digest != question.instruments.get(requirement.kind):
        return "made by another version of the instrument"
    if _is_called_otherwise(record, requirement, question):
        return "called through another version of the product's Python layer"
    if requirement.uses_inputs and record.inputs != question.inputs:
        return "made with other inputs"
    # A GPU machine often has no git to say so; there the instrument's digest is all that is held.
    if record.artifact.dirty and not requirement.on_gpu and not question.candidate.dirty:
        return "made while files differed from the commit"
    if requirement.on_gpu and not record.machine.get("gpus"):
        return "made without a GPU in sight"
    if not requirement.on_gpu and question.run_id is not None and record.run_id != question.run_id:
        return "of another run"
    if requirement.against_base and record.selection.get("base") != _base_name(requirement, question):
        return "made against another base"
    # A failure counts however little was covered.
    if record.outcome != "fail" and not covers(record.selection, requirement.selection):
        return f"covering less than {_words(requirement)}"
    return None


def _is_called_otherwise(record: Record, requirement: Requirement, question: Question) -> bool:
    """True for a candidate's record whose calls didn't go through its own Python layer."""
    # What the base shows as a control is the machine, and one Python layer serves both sides.
    is_held = requirement.side == "candidate" and requirement.calls
    return is_held and record.artifact.binding != question.candidate.binding


def _conclude(
    requirement: Requirement, subject: Subject, fresh: Sequence[Record], stale: tuple[str, ...]
) -> Finding:
    for outcome, state in (("fail", FAIL), ("pass", PASS)):
        chosen = [record for record in fresh if record.outcome == outcome]
        if chosen:
            reason = _reason(requirement, chosen[0], subject)
            return Finding(
                requirement=requirement, state=state, reason=reason, records=_ids(chosen), stale=stale
            )
    reason = _reason(requirement, fresh[0], subject)
    return Finding(
        requirement=requirement, state=INCONCLUSIVE, reason=reason, records=_ids(fresh), stale=stale
    )


def _reason(requirement: Requirement, record: Record, subject: Subject) -> Reason:
    where = (
        ""
        if record.artifact.sha256 == subject.sha256
        else f", measured on file {record.artifact.sha256[:12]}"
    )
    if not record.reasons:
        return Reason(code="passed", text=f"{requirement.name}{where}")
    first = record.reasons[0]
    return Reason(code=first.code, text=f"{requirement.name}: {first.text}{where}")


def _missing(requirement: Requirement, stale: Sequence[str], *, bound: bool) -> Reason:
    """`bound`: the record had to be of this run, whose step has left none."""
    here = ": this run left no record of it, see what its step printed" if bound else ""
    seen = f"; not counted: {', '.join(stale)}" if stale else ""
    code = "stale-evidence" if stale else "no-evidence"
    return Reason(code=code, text=f"{requirement.name}{here}{seen}; run {requirement.command}")


def _no_binary(requirement: Requirement, side: Side) -> Reason:
    text = f"{requirement.name}: there is no such binary on the {requirement.side}'s side"
    return side.failed.get((requirement.backend, requirement.arch), Reason(code="no-binary", text=text))


def _base_name(requirement: Requirement, question: Question) -> str | None:
    base = question.base.find(requirement.backend, requirement.arch)
    if base is None or (requirement.kind == "static" and base.code_digest is None):
        return None  # a foreign library comes without the compiler's report: limits alone are held
    return base.code_digest or base.sha256


def _words(requirement: Requirement) -> str:
    return ", ".join(f"{key} {value}" for key, value in requirement.selection.items())


def _ids(records: Sequence[Record]) -> tuple[str, ...]:
    return tuple(record.id for record in records)
