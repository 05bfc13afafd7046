"""The verdict: a pure function of a question and records. No GPU, no torch, no clock.

Missing evidence is unknown, and unknown never passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evidence.ending import EXIT_CODES
from evidence.findings import FAIL, MISSING, PASS, Finding, find
from evidence.policy import POLICY, Requirement, differing, requirements, to_prove
from evidence.question import Question
from evidence.record import Reason, Record

ADMITTED, REJECTED, UNDECIDED, UNKNOWN = "admitted", "rejected", "undecided", "unknown"
RENEWED = ("bits-differ", "partials-differ")
MEASURED = frozenset({"time-undecided"})  # nothing is missing, but what was measured is not enough to tell


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`scope` is what was vouched for; the first reason stands in the last line unless it is admitted."""

    word: str
    scope: str
    reasons: tuple[Reason, ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The process's exit status."""
        return EXIT_CODES[self.word]

    def line(self) -> str:
        """The last line of every command."""
        text = self.scope if self.word == ADMITTED else _headline(self)
        return f"verdict: {self.word} ({' '.join(text.split())})"


def decide(
    question: Question,
    records: Iterable[Record],
    *,
    unreadable: Sequence[str] = (),
    policy: tuple[Requirement, ...] = POLICY,
) -> Verdict:
    """Hold all records against the policy. `unreadable` names damaged files: none may be there."""
    known = tuple(records)
    found = tuple(find(entry, question, known) for entry in requirements(question, policy))
    word, reasons = _judge(question, found, unreadable)
    whole = scope(question, found) + _changed_bits(question, found)
    return Verdict(word=word, scope=whole, reasons=reasons, findings=found, notes=_notes(found))


def scope(question: Question, found: Sequence[Finding] = ()) -> str:
    """What an admission would vouch for, given what was found."""
    changed = differing(question)
    if not changed:
        return "host; cuda unchanged"
    on_gpu = [f for f in found if f.requirement.on_gpu]
    seen = {f.requirement.arch for f in on_gpu} - {f.requirement.arch for f in on_gpu if not f.passed}
    proven = [arch for arch in changed if arch in seen or arch in to_prove(question)]
    unproven = [arch for arch in changed if arch not in proven]
    return f"host + gpu {', '.join(proven)}" + (f"; {', '.join(unproven)} unproven" if unproven else "")


def _changed_bits(question: Question, found: Sequence[Finding]) -> str:
    """The base fails the goldens that the candidate meets: they were renewed, and the changelog says why."""
    if not _renewed(found):
        return ""
    why = {text.partition(", ")[2] for text in _new_entries(question)}
    return f"; {'; '.join(sorted(why))}"


def _renewed(found: Sequence[Finding]) -> tuple[str, ...]:
    """Architectures whose goldens the base no longer gives."""
    controls = (f for f in found if f.requirement.control and f.state == FAIL)
    return tuple(f.requirement.arch for f in controls if f.reason.code in RENEWED)


def _new_entries(question: Question) -> tuple[str, ...]:
    if question.base.revision is None:  # whose changelog isn't known, so that nothing can be called new
        return ()
    new = Counter(question.candidate.accepted) - Counter(question.base.accepted)
    return tuple(text for text in new if not text.rstrip().endswith("because"))


def _unexplained(question: Question, found: Sequence[Finding]) -> tuple[Reason, ...]:
    """Goldens that were renewed without an entry in the changelog."""
    known = {text.partition(", ")[0] for text in _new_entries(question)}
    return tuple(
        Reason(
            code="bits-unexplained",
            text=f"the goldens of {arch} were renewed, and CHANGELOG.md has no new entry that says why",
        )
        for arch in _renewed(found)
        if arch not in known
    )


def _judge(
    question: Question, found: Sequence[Finding], unreadable: Sequence[str]
) -> tuple[str, tuple[Reason, ...]]:
    failed = [finding for finding in found if finding.state == FAIL and not finding.requirement.control]
    excused = [finding for finding in failed if _base_fails_too(finding, found)]
    if len(failed) > len(excused):
        return REJECTED, tuple(finding.reason for finding in failed if finding not in excused)
    doubts = (*_excuses(excused), *_damage(unreadable), *_sides(question), *_gaps(question, found))
    doubts += _unexplained(question, found) if not excused else ()
    if doubts:
        return UNDECIDED if {doubt.code for doubt in doubts} <= MEASURED else UNKNOWN, doubts
    if question.candidate.dirty:
        return UNDECIDED, (_dirty(question, found),)
    return ADMITTED, tuple(finding.reason for finding in found)


def _base_fails_too(finding: Finding, found: Sequence[Finding]) -> bool:
    same = (finding.requirement.kind, finding.requirement.backend, finding.requirement.arch)
    return any(
        other.requirement.control
        and other.state == FAIL
        and (other.requirement.kind, other.requirement.backend, other.requirement.arch) == same
        for other in found
    )


def _excuses(excused: Sequence[Finding]) -> tuple[Reason, ...]:
    return tuple(
        Reason(
            code="base-fails-too",
            text=f"{finding.requirement.name} fails ({finding.reason.code}) and so does the base's: "
            "the machine or the fixtures are at fault",
        )
        for finding in excused
    )


def _damage(unreadable: Sequence[str]) -> tuple[Reason, ...]:
    return tuple(Reason(code="unreadable-record", text=text) for text in unreadable)


def _sides(question: Question) -> tuple[Reason, ...]:
    found = list(question.candidate.failed.values())
    found.extend(side.missing for side in (question.candidate, question.base) if side.missing is not None)
    if not question.candidate.subjects and question.candidate.missing is None:
        found.append(Reason(code="nothing-built", text="the candidate has no binary"))
    if question.candidate.revision is None and not question.candidate.dirty:
        found.append(
            Reason(code="no-revision", text="the candidate's sources are not those of a known revision")
        )
    return tuple(found)


def _gaps(question: Question, found: Sequence[Finding]) -> tuple[Reason, ...]:
    # One reason is enough for a base that isn't there. A control that fails while the candidate passes is no
    # gap: bits changed on purpose look like that.
    said = question.base.missing is not None
    gaps = [
        f
        for f in found
        if not f.passed
        and not f.requirement.optional
        and not (f.requirement.control and (said or f.state == FAIL))
        and not _is_spared(question, f)
    ]
    on_cpu = tuple(f.reason for f in gaps if not f.requirement.on_gpu)
    return on_cpu + tuple(_gpu_gap(f) for f in gaps if f.requirement.on_gpu)


def _is_spared(question: Question, finding: Finding) -> bool:
    """A GPU's record that may be missing, as another architecture's speaks for both; a bad one counts."""
    entry = finding.requirement
    return entry.on_gpu and finding.state == MISSING and entry.arch not in to_prove(question)


def _gpu_gap(finding: Finding) -> Reason:
    if finding.state != MISSING or finding.reason.code not in ("no-evidence", "stale-evidence"):
        return finding.reason
    return Reason(code="needs-gpu-records", text=finding.reason.text)


def _dirty(question: Question, found: Sequence[Finding]) -> Reason:
    files = question.candidate.dirty
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    would = f"all else passes ({scope(question, found)})"
    return Reason(
        code="dirty-tree", text=f"{', '.join(files[:3])}{more}; commit, then measure again; {would}"
    )


def _notes(found: Sequence[Finding]) -> tuple[str, ...]:
    absent = [
        f"{f.requirement.name} would be welcome: {f.reason.text}"
        for f in found
        if f.requirement.optional and f.state not in (PASS, FAIL)
    ]
    # Where some record counts, the others are of no interest.
    stale = [
        f"{f.requirement.name}: not counted: {', '.join(f.stale)}" for f in found if f.stale and not f.records
    ]
    differing = [
        f"{f.requirement.name} fails ({f.reason.code}): expected only where bits are changed on purpose"
        for f in found
        if f.requirement.control and f.state == FAIL
    ]
    return (*stale, *differing, *absent)


def _headline(verdict: Verdict) -> str:
    first = verdict.reasons[0]
    if first.code == "needs-gpu-records":
        named = {reason.text for reason in verdict.reasons}
        commands = " and ".join(
            f.requirement.command for f in verdict.findings if _is_gpu_gap(f) and f.reason.text in named
        )
        return (
            f"needs gpu records: run {commands} on a GPU machine, evidence pack there, evidence import here"
        )
    more = f"; and {len(verdict.reasons) - 1} more" if len(verdict.reasons) > 1 else ""
    return f"{first.code}: {first.text}{more}"


def _is_gpu_gap(finding: Finding) -> bool:
    return finding.requirement.on_gpu and not finding.passed
