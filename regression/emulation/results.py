"""What emulating a case found, and what it means for the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regression import judge
from regression.emulation import launch
from regression.judge import Judgement, Reason

DIFFERS, STUCK, CRASHED = "differs", "stuck", "crashed"
WORDS = ("rejected", "unknown", "undecided", "admitted")
# In this order they stand in a verdict; each has a reason code, which evidence explains.
CODES = {CRASHED: "emulation-crashed", STUCK: "emulation-stuck", DIFFERS: "emulation-differs"}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is wrong: `kind` is a key of CODES, `order` the threads' order, `text` where it shows first."""

    kind: str
    order: str
    text: str


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """One case, with what each order of threads found."""

    name: str
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CaseResult:
        """What `as_json` gave."""
        return cls(**{**value, "findings": tuple(Finding(**each) for each in value["findings"])})


@dataclass(frozen=True, kw_only=True)
class Emulation:
    """All cases of one architecture. `stopped` says why the cases behind the last one were not run."""

    results: tuple[CaseResult, ...]
    wanted: int
    stopped: str = ""


def decide(found: Emulation, *, scope: str, knows_launch: bool = True) -> Judgement:
    """The verdict on one architecture; `scope` says what it covers.

    Without `knows_launch` a finding may be the fault of a launch that the emulator doesn't follow.
    """
    reasons = tuple(_reason(kind, found, scope) for kind in CODES if _hit(kind, found.results))
    if reasons and not knows_launch:
        files = ", ".join(launch.FILES)
        text = (
            f"the emulator doesn't follow how these sources launch ({files}), so it can't blame the kernels"
        )
        return judge.unknown("not-emulated", f"{text}: {reasons[0].text}")
    if reasons:
        return Judgement(word="rejected", reasons=reasons)
    if len(found.results) < found.wanted:
        return judge.unknown("time-limit", f"{scope}: {found.stopped}")
    if not found.results:
        return judge.unknown("nothing-checked", "no case was run: choose --cases core or all")
    text = f"{scope}: {found.wanted} cases on an emulated GPU, each in two orders of threads: the host's bits"
    return Judgement(word="admitted", reasons=(Reason(code="emulation-same", text=text),))


def together(each: Sequence[Judgement]) -> Judgement:
    """One verdict on several architectures: the worst of theirs, with all its reasons."""
    worst = min((judgement.word for judgement in each), key=WORDS.index)
    reasons = [reason for judgement in each if judgement.word == worst for reason in judgement.reasons]
    if worst not in ("admitted", "undecided"):
        return Judgement(word=worst, reasons=tuple(reasons))
    text = "; ".join(reason.text for reason in reasons)
    return Judgement(word=worst, reasons=(Reason(code=reasons[0].code, text=text),))


def _hit(kind: str, results: Sequence[CaseResult]) -> list[tuple[CaseResult, Finding]]:
    return [(result, each) for result in results for each in result.findings if each.kind == kind]


def _reason(kind: str, found: Emulation, scope: str) -> Reason:
    hit = _hit(kind, found.results)
    count, (first, finding) = len({result.name for result, _ in hit}), hit[0]
    text = f"{scope}: {count} of {found.wanted} cases, first {first.name}, {finding.order}: {finding.text}"
    return Reason(code=CODES[kind], text=text)
