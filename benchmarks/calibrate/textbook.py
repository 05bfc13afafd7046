"""The protocol that is usual: a graph and a workspace a side, 20 warm-ups, 100 ABBA blocks, a t-interval.

It takes blocks for independent samples, though all of them share two captures. It is run beside the engine to
show what that costs.
"""

from __future__ import annotations

import math
import statistics

from benchmarks.abba.orders import ABBA
from benchmarks.abba.sampling import BASE, CANDIDATE, SIDES, Bench, Instance, Leg
from benchmarks.abba.sequence import Interval
from benchmarks.calibrate import rates

WARM_UPS, BLOCKS = 20, 100


def interval(bench: Bench, *, alpha: float) -> Interval:
    """The t-interval of the log ratio after all 100 blocks."""
    instances = _instances(bench)
    for _ in range(WARM_UPS):
        bench.play([instances[side] for side in SIDES], 1)
    ratios = [_ratio(bench.play([instances[side] for side in ABBA], 1)) for _ in range(BLOCKS)]
    error = statistics.stdev(ratios) / math.sqrt(BLOCKS)
    half = rates.t_quantile(1 - alpha / 2, BLOCKS - 1) * error
    middle = statistics.fmean(ratios)
    return Interval(low=middle - half, high=middle + half)


def _instances(bench: Bench) -> dict[str, Instance]:
    """One capture a side, of two pairs: the captures of a pair share a workspace, which is not usual."""
    first, second = ({side: bench.capture(side) for side in SIDES} for _ in range(2))
    return {BASE: first[BASE], CANDIDATE: second[CANDIDATE]}


def _ratio(legs: tuple[Leg, ...]) -> float:
    first, second, third, fourth = (leg.log_us for leg in legs)
    return (second + third - first - fourth) / 2
