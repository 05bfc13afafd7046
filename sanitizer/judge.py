"""From attempts to one word. Only a run whose signs all agree, and whose controls were found, can admit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evidence.record import Reason
from sanitizer.batch import CONTROL, Attempt
from sanitizer.findings import Finding, merged
from sanitizer.suppressions import Suppression, split


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """`complaints` are cases with a wrong outcome; `findings` stand, `suppressed` don't count."""

    word: str
    reasons: tuple[Reason, ...]
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Finding, ...] = ()
    complaints: tuple[tuple[str, str], ...] = ()
    controls: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The last line of the command."""
        shown = self.word if self.word in ("admitted", "rejected", "undecided") else "unknown"
        return f"verdict: {shown} ({self.reasons[0].code}: {self.reasons[0].text.splitlines()[0]})"


def judge(
    names: Sequence[str],
    controls: Sequence[str],
    attempts: Sequence[Attempt],
    entries: Sequence[Suppression] = (),
    *,
    scope: str,
) -> Judgement:
    """The verdict over cases and controls; `scope` says what an admission covers."""
    found = merged(finding for attempt in attempts for finding in attempt.findings)
    planted = {f.case for f in found} & set(controls)
    standing, suppressed = split([f for f in found if f.case not in planted], entries)
    complaints = tuple(
        (name, text)
        for attempt in attempts
        for name, text in attempt.marks.ended.items()
        if text is not None and not name.startswith(CONTROL)
    )
    broken = _broken(standing, complaints)
    doubts = _doubts(names, controls, attempts, planted)
    unjudged = _unjudged({*names} - {finding.case for finding in standing}, attempts)
    code = "clean-but-suppressed" if suppressed else "memory-clean"
    praise = Reason(code=code, text=_praise(names, controls, suppressed, scope))
    words = {"rejected": broken, "unknown": doubts, "undecided": unjudged}
    return Judgement(
        word=next((word for word, reasons in words.items() if reasons), "admitted"),
        reasons=(*broken, *doubts, *unjudged) or (praise,),
        findings=standing,
        suppressed=suppressed,
        complaints=complaints,
        controls=tuple(sorted(planted)),
        signs=tuple(attempt.signs for attempt in attempts),
    )


def unknown(code: str, text: str) -> Judgement:
    """Nothing was shown either way."""
    return Judgement(word="unknown", reasons=(Reason(code=code, text=text),))


def usage(text: str) -> Judgement:
    """The command can't be obeyed as given."""
    return Judgement(word="usage", reasons=(Reason(code="usage", text=text),))


def _broken(findings: Sequence[Finding], complaints: Sequence[tuple[str, str]]) -> tuple[Reason, ...]:
    reasons = []
    if findings:
        first = findings[0]
        where = f"{first.text} at {first.place} in {first.case or 'a case not known'}"
        count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings, first"
        reasons.append(Reason(code="memory-error", text=f"{count}: {where}"))
    if complaints:
        name, text = complaints[0]
        count = "" if len(complaints) == 1 else f"{len(complaints)} cases, first "
        reasons.append(Reason(code="wrong-outcome", text=f"{count}{name}: {text}"))
    return tuple(reasons)


def _praise(names: Sequence[str], controls: Sequence[str], suppressed: Sequence[Finding], scope: str) -> str:
    """What was clean; a case with a suppressed finding is not."""
    spared = {finding.case for finding in suppressed} & set(names)
    text = f"{scope}: {len(names) - len(spared)} cases clean, {len(controls)} planted found"
    if suppressed:
        text += f"; {_many(len(suppressed), 'finding')} suppressed in {_many(len(spared), 'case')}"
    return text


def _unjudged(names: set[str], attempts: Sequence[Attempt]) -> tuple[Reason, ...]:
    """Cases that began and never ended: whatever ended them, nobody saw their outcome."""
    ended = {name for attempt in attempts for name in attempt.marks.ended}
    cut = [name for name in sorted(names - ended) if any(name == attempt.marks.open for attempt in attempts)]
    if not cut:
        return ()
    text = f"{_many(len(cut), 'case')} never came to an end, so that no outcome was judged, first {cut[0]}"
    return (Reason(code="cut-short", text=text),)


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _doubts(
    names: Sequence[str], controls: Sequence[str], attempts: Sequence[Attempt], planted: set[str]
) -> tuple[Reason, ...]:
    """What keeps a run without findings from meaning anything."""
    reasons = [problem for attempt in attempts for problem in attempt.problems]
    run = {name for attempt in attempts for name in (*attempt.marks.ended, attempt.marks.open)}
    left = [name for name in names if name not in run]
    if not names:
        reasons.append(Reason(code="nothing-checked", text="no case was chosen"))
    if left:
        reasons.append(
            Reason(code="cases-missing", text=f"{len(left)} cases were never run, first {left[0]}")
        )
    missed = [name for name in controls if name not in planted]
    if missed or not controls:
        text = f"the planted fault {', '.join(missed) or '(none)'} was not found: the tool is blind here"
        reasons.append(Reason(code="control-not-found", text=text))
    return tuple(reasons)
