"""What a run of the contract found, per case and over all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from regression import judge
from regression.contract.gates import Violation
from regression.judge import Judgement, Reason

SHOWN = 24


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """One case. `uncovered` names what could not be held against the target; without anything left that
    could be, `ran` is False. `catches` is the mistake that the case is made for.
    """

    name: str
    catches: str = ""
    violations: tuple[Violation, ...] = ()
    uncovered: tuple[str, ...] = ()
    ran: bool = True
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def decide(results: Sequence[CaseResult], *, scope: str) -> Judgement:
    """The verdict; `scope` says what an admission covers."""
    ran = [result for result in results if result.ran]
    if not ran:
        return judge.unknown("nothing-checked", "no case was run: choose --cases core or all")
    reasons = tuple(_reason(gate, ran) for gate in _gates(ran))
    if reasons:
        return Judgement(word="rejected", reasons=reasons)
    gaps = uncovered(results)
    gap = f"; not covered: {gaps}" if gaps else ""
    text = f"{scope}: {len(ran)} cases as they must be{gap}"
    return Judgement(word="admitted", reasons=(Reason(code="contract-kept", text=text),))


def uncovered(results: Sequence[CaseResult]) -> str:
    """What was not covered, with counts of cases; empty when nothing was left out."""
    counts: dict[str, int] = {}
    for result in results:
        for what in result.uncovered:
            counts[what] = counts.get(what, 0) + 1
    return ", ".join(f"{what} ({count} cases)" for what, count in counts.items())


def failures(results: Sequence[CaseResult]) -> Table:
    """The broken cases, for a terminal."""
    table = Table(title="broken", title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("case", "gate", "what", "made for"):
        table.add_column(heading, overflow="fold")
    broken = [(result, violation) for result in results for violation in result.violations]
    for case, violation in broken[:SHOWN]:
        table.add_row(case.name, violation.gate, violation.text.removeprefix(f"{case.name}: "), case.catches)
    if len(broken) > SHOWN:
        table.add_row(f"… and {len(broken) - SHOWN} more", "", "--json has all")
    return table


def _gates(results: Sequence[CaseResult]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v.gate for result in results for v in result.violations))


def _reason(gate: str, results: Sequence[CaseResult]) -> Reason:
    broken = [(r, v) for r in results for v in r.violations if v.gate == gate]
    count = len({result.name for result, _ in broken})
    _, first = broken[0]
    return Reason(code=CODES[gate], text=f"{count} of {len(results)} cases, first {first.text}")


# Reason codes, which evidence explains.
CODES = {
    "kernel-failed": "kernel-failed",
    "output-written": "writes-wrong",
    "exact": "exact-bits",
    "nan": "nan-misplaced",
    "control": "control-differs",
    "budget": "over-budget",
    "partial-bound": "partials-over-bound",
    "states": "state-kept",
    "layout": "layout-differs",
    "refusal": "not-refused",
}
