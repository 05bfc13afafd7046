"""The verdict over a family of comparisons, and where it is printed and kept."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.abba import decision, sequence
from benchmarks.abba.engine import Comparison
from benchmarks.abba.sampling import BASE
from benchmarks.latency.problem import Shape
from evidence.ending import Verdict


@dataclass(frozen=True, kw_only=True)
class Result:
    """One member of the family."""

    shape: Shape
    comparison: Comparison

    @property
    def name(self) -> str:
        """What tells it from the others."""
        return f"{self.shape.context} q{self.shape.rows} page {self.shape.page}"

    @property
    def log_ratio(self) -> float | None:
        """The estimate, None without a valid round."""
        values = [one.log_ratio for one in self.comparison.counted]
        return sequence.centre(values) if values else None

    @property
    def base_us(self) -> float | None:
        """The base's median time of one call, warm-ups left out."""
        pairs = (pair for one in self.comparison.counted for pair in one.pairs)
        legs = (leg for pair in pairs for block in pair.kept for leg in block.legs if leg.side == BASE)
        times = [time for leg in legs for time in leg.times_us]
        return statistics.median(times) if times else None


def conclude(results: Sequence[Result], *, is_host: bool) -> Verdict:
    """A guard's alarm first, then the words. A CPU's clock can test the instrument, never the kernel."""
    verdict = _alarmed(results) or decision.judge(
        [(r.name, r.comparison.word, r.comparison.rejects) for r in results]
    )
    if not is_host:
        return verdict
    text = f"a test of the instrument, which finds {verdict.word} ({verdict.code}: {verdict.text})"
    return Verdict(
        word="unknown", code="host-clock", text=f"{text}; a CPU's clock says nothing of the kernel"
    )


def _alarmed(results: Sequence[Result]) -> Verdict | None:
    found = [(r.name, r.comparison.alarm) for r in results if r.comparison.alarm is not None]
    for name, alarm in sorted(found, key=lambda item: not item[1].rejects):
        word = "rejected" if alarm.rejects else "unknown"
        return Verdict(word=word, code=alarm.code, text=f"{name}: {alarm.text}")
    return None
