"""Where the noise comes from: moment estimates of each level's variance, and the design that follows.

A round's ratio carries the variance of its pairs, of their blocks, of their replays. Nested analysis of
variance takes each level's mean square and subtracts what the levels below put into it (Searle, Casella and
McCulloch, "Variance Components", 1992). An estimate below 0 is reported as 0.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.abba.sampling import SIDES, Block, Pair, Round

MOST_BLOCKS = 8
LEAST_VARIANCE = 1e-16  # of a log ratio; stands in for an estimate of 0


@dataclass(frozen=True, kw_only=True)
class Components:
    """Variances of a log ratio by its source; `process` is None unless several processes were measured.

    `replay`: of one block's ratio, from the scatter of its replays. `block`: what blocks of a pair differ by
    beyond that. `instance`: what pairs of captures differ by beyond their blocks. `order_effect`: mean log
    ratio of what is captured second over what is captured first, which mirrored rounds cancel.
    """

    replay: float
    block: float
    instance: float
    order_effect: float
    process: float | None = None

    @property
    def shares(self) -> dict[str, float]:
        """Each level's share of the variance of a ratio of one block; they add up to 1."""
        parts = {"replay": self.replay, "block": self.block, "instance": self.instance}
        if self.process is not None:
            parts["process"] = self.process
        total = sum(parts.values())
        return {name: value / total if total > 0 else 0.0 for name, value in parts.items()}


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds for capturing a pair (and its warm-up block), and for one more block."""

    pair_s: float
    block_s: float


def components(processes: Sequence[Sequence[Round]]) -> Components:
    """Of the rounds of one process or several; each needs at least two pairs with two kept blocks."""
    pairs = [pair for rounds in processes for one in rounds for pair in one.pairs if pair.kept]
    blocks = [block for pair in pairs for block in pair.kept]
    replay = _mean(_replay(block) for block in blocks)
    within = _mean(_variance([b.log_ratio for b in p.kept]) for p in pairs if len(p.kept) > 1)
    between = _mean(_between(rounds) for rounds in processes)
    per_pair = _mean(1 / len(pair.kept) for pair in pairs)
    return Components(
        replay=replay,
        block=max(0.0, within - replay),
        instance=max(0.0, between - max(within, replay) * per_pair),
        order_effect=_mean(_second_over_first(pair) for pair in pairs),
        process=_process(processes),
    )


def costs(rounds: Sequence[Round]) -> Costs:
    """Medians over the pairs of some rounds."""
    pairs = [pair for one in rounds for pair in one.pairs]
    return Costs(
        pair_s=statistics.median(pair.capture_s for pair in pairs),
        block_s=statistics.median(pair.blocks_s / max(1, len(pair.blocks) - 1) for pair in pairs),
    )


def best_blocks(found: Components, price: Costs) -> int:
    """Kept blocks per pair that give the least variance per second (Cochran, "Sampling Techniques", 10.6)."""
    within = max(LEAST_VARIANCE, found.replay + found.block)
    ratio = within / max(LEAST_VARIANCE, found.instance) * price.pair_s / max(1e-9, price.block_s)
    return min(MOST_BLOCKS, max(1, round(math.sqrt(ratio))))


def _replay(block: Block) -> float:
    """Variance that the scatter within each side's samples puts into the block's ratio."""
    total = 0.0
    for side in SIDES:
        logs = [math.log(t) for leg in block.legs if leg.side == side for t in leg.times_us]
        total += _variance(logs) / len(logs)
    return total


def _between(rounds: Sequence[Round]) -> float:
    """Variance of the pairs' ratios within a process, free of what the order of capture does."""
    pairs = [pair for one in rounds for pair in one.pairs if pair.kept]
    by_first = [[p.log_ratio for p in pairs if p.first == side] for side in SIDES]
    residuals = [x - statistics.fmean(group) for group in by_first if group for x in group]
    freedom = len(residuals) - sum(1 for group in by_first if group)
    return sum(x * x for x in residuals) / freedom if freedom > 0 else 0.0


def _process(processes: Sequence[Sequence[Round]]) -> float | None:
    """Variance of the processes' means beyond what their rounds explain."""
    groups = [[r.log_ratio for r in rounds if r.valid] for rounds in processes]
    groups = [group for group in groups if len(group) > 1]
    if len(groups) < 2:
        return None
    explained = _mean(_variance(group) / len(group) for group in groups)
    return max(0.0, _variance([statistics.fmean(group) for group in groups]) - explained)


def _second_over_first(pair: Pair) -> float:
    return pair.log_ratio if pair.first == SIDES[0] else -pair.log_ratio


def _variance(values: Sequence[float]) -> float:
    return statistics.variance(values) if len(values) > 1 else 0.0


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return statistics.fmean(found) if found else 0.0
