"""The comparisons as text: one line each, and where their noise comes from."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.abba.outcome import Result
from benchmarks.abba.sampling import Round

HEAD = ("context", "rows", "page", "base µs", "ratio", "interval", "verdict", "rounds", "void", "s")


def text(results: Sequence[Result]) -> str:
    """Ratios are candidate ÷ base, above 1 is slower; rounds are those that count, void those that don't."""
    rows = [HEAD, *(_row(result) for result in results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)


def noise(result: Result) -> str:
    """One line: each level's share of the variance, and the design that the pilot chose."""
    comparison = result.comparison
    if comparison.components is None or comparison.design is None:
        return f"{result.name}: no estimate of the noise"
    parts = comparison.components
    shares = ", ".join(f"{level} {share:.0%}" for level, share in parts.shares.items())
    deviation = math.sqrt(parts.replay + parts.block + parts.instance)
    return (
        f"{result.name}: deviation of a block {deviation:.2%} ({shares}; process and build not varied); "
        f"second capture {parts.order_effect:+.2%}; {comparison.design.kept_blocks} blocks a pair, "
        f"{comparison.launches} calls a sample"
    )


def ratio(log_ratio: float | None) -> str:
    """Five decimals, or a dash where nothing is known."""
    return "-" if log_ratio is None or not math.isfinite(log_ratio) else f"{math.exp(log_ratio):.5f}"


def voids(rounds: Sequence[Round]) -> dict[str, int]:
    """How many pairs or blocks each reason voided."""
    found: dict[str, int] = {}
    for pair in (pair for one in rounds for pair in one.pairs):
        for reason in (pair.void, *(block.void for block in pair.blocks)):
            if reason is not None:
                found[reason] = found.get(reason, 0) + 1
    return found


def _row(result: Result) -> tuple[str, ...]:
    shape, found = result.shape, result.comparison
    base_us = "-" if result.base_us is None else f"{result.base_us:.2f}"
    return (
        *(str(n) for n in (shape.context, shape.rows, shape.page)),
        base_us,
        ratio(result.log_ratio),
        f"{ratio(found.interval.low)} - {ratio(found.interval.high)}",
        found.word if found.alarm is None else found.alarm.code,
        str(len(found.counted)),
        str(sum(voids(found.rounds).values())),
        f"{found.seconds:.2f}",
    )
