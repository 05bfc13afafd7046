"""From group results to one word. A missing golden is unknown, and unknown never passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from artifacts.claims import NO_REVISION
from evidence.ending import EXIT_CODES
from regression.results import GroupResult


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why: a code to look up and a sentence."""

    code: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """`word` is a key of EXIT_CODES; the first reason stands in the last line."""

    word: str
    reasons: tuple[Reason, ...]

    @property
    def exit_code(self) -> int:
        """The process's exit status."""
        return EXIT_CODES[self.word]

    def line(self) -> str:
        """The last line of every command. What could not be judged is unknown to whoever reads it."""
        shown = self.word if self.word in ("admitted", "rejected", "undecided") else "unknown"
        text = self.reasons[0].text.splitlines() or [""]
        return f"verdict: {shown} ({self.reasons[0].code}: {text[0]})"

    def details(self) -> list[str]:
        """What stands above that line: the rest of the first reason, and the other reasons."""
        others = [f"also {reason.code}: {reason.text}" for reason in self.reasons[1:]]
        return self.reasons[0].text.splitlines()[1:] + others


Rule = tuple[str, Callable[[GroupResult], bool], str]

FAILURES: tuple[Rule, ...] = (
    ("unwritten-output", lambda g: g.unwritten > 0, "output elements never written"),
    ("stray-write", lambda g: g.strayed > 0, "writes beside the output"),
    ("inputs-modified", lambda g: bool(g.modified_inputs), "inputs modified by the kernel"),
    ("not-finite", lambda g: g.accuracy.not_finite > 0, "NaN or infinite output where the oracle is finite"),
    ("bits-differ", lambda g: bool(g.mismatching), "output bits differ from the golden"),
    ("partials-differ", lambda g: g.partials == "differ", "partials differ from the golden"),
    ("over-budget", lambda g: not g.accuracy.within, "relative L2 over 1.02*floor + 2e-6"),
)
GAPS: tuple[Rule, ...] = (
    ("no-golden", lambda g: g.mismatching is None, "no golden output"),
    ("no-golden-partials", lambda g: g.partials == "no golden", "no golden partials"),
)


def judge(results: Sequence[GroupResult], *, scope: str) -> Judgement:
    """The verdict over all groups; `scope` says what an admission covers."""
    if not results:
        return unknown("nothing-replayed", "no group was replayed: choose --groups core or all")
    failures = broken(FAILURES, results)
    if failures:
        return Judgement(word="rejected", reasons=failures)
    gaps = broken(GAPS, results)
    if all(group.mismatching is None for group in results):
        return Judgement(word="unknown", reasons=(_no_goldens(results, scope),))
    if gaps:
        return Judgement(word="unknown", reasons=gaps)
    return Judgement(word="admitted", reasons=(Reason(code="same-bits", text=_praise(results, scope)),))


def claimed(judgement: Judgement, dirty: Sequence[str]) -> Judgement:
    """What may be said when the files `dirty` differ from the commit: measured, never admitted."""
    if judgement.word != "admitted" or not dirty:
        return judgement
    if NO_REVISION in dirty:
        text = f"{judgement.reasons[0].text}, but its sources are of no commit that is known here"
        return Judgement(word="undecided", reasons=(Reason(code="no-revision", text=text),))
    others = f" and {len(dirty) - 1} more" if len(dirty) > 1 else ""
    text = (
        f"{judgement.reasons[0].text}, but {dirty[0]}{others} differ from the commit: commit, and run again"
    )
    return Judgement(word="undecided", reasons=(Reason(code="dirty-tree", text=text),))


def unknown(code: str, text: str) -> Judgement:
    """Nothing was shown either way."""
    return Judgement(word="unknown", reasons=(Reason(code=code, text=text),))


def error(code: str, text: str) -> Judgement:
    """The machinery failed, which says nothing about the kernel."""
    return Judgement(word="error", reasons=(Reason(code=code, text=text),))


def failed(code: str, text: str) -> Judgement:
    """The kernel failed before its bits could be compared."""
    return Judgement(word="rejected", reasons=(Reason(code=code, text=text),))


def usage(text: str) -> Judgement:
    """The command cannot be obeyed as given."""
    return Judgement(word="usage", reasons=(Reason(code="usage", text=text),))


def broken(rules: Sequence[Rule], results: Sequence[GroupResult]) -> tuple[Reason, ...]:
    """One reason for each rule that some group breaks, naming the first."""
    reasons = []
    for code, breaks, text in rules:
        hit = [group.id for group in results if breaks(group)]
        if hit:
            reasons.append(
                Reason(code=code, text=f"{text}: {len(hit)} of {len(results)} groups, first {hit[0]}")
            )
    return tuple(reasons)


def _no_goldens(results: Sequence[GroupResult], scope: str) -> Reason:
    text = (
        f"{scope}: the fixtures hold no goldens for it, its bits can't be compared; all {len(results)} "
        "groups are within FP64's budget. --accept REASON writes goldens, from a kernel known to be right"
    )
    return Reason(code="no-golden", text=text)


def _praise(results: Sequence[GroupResult], scope: str) -> str:
    unchecked = sum(group.partials != "ok" for group in results)
    gap = f", partials unchecked in {unchecked}" if unchecked else ""
    return f"{scope}: {len(results)} groups bit for bit{gap}"
