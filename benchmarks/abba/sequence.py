"""A confidence sequence for the centre of the log ratios: valid whenever one stops, at any number of rounds.

Orders are drawn at random (`orders`), so of one kernel against itself each round's log ratio is symmetric
about 0 given all earlier ones, whatever drifts, alternates or has heavy tails: no normality is needed, and
no variance. Of a kernel that is slower by a factor it is symmetric about the factor's log as far as the
noise of both sides is alike.

For x symmetric about m and y an odd function of x - m, exp(y) / cosh(y) has mean 1: the Fisher-type e-test
of Vovk and Wang, "Nonparametric e-tests of symmetry" (New England J. Stat. Data Sci. 2, 2024). The product
over the rounds, mixed over bets, is a nonnegative martingale, and {m: product < 1 / alpha} a confidence
sequence by Ville's inequality (Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric,
nonasymptotic confidence sequences", Ann. Stat. 49, 2021). Each end takes alpha / 2. The scale of a bet
comes from earlier rounds only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Bets per scale: large ones decide after ten rounds, small ones find small effects in hundreds.
BETS = tuple(2.0**-k for k in np.arange(0, 5.5, 0.5).tolist())
CLIP = 3.0  # scales beyond which a round counts no more: one bad neighbour must not spoil a comparison
DIFFERENCE_TO_SCALE = math.sqrt(math.pi) / 2  # a Gaussian's scale, per mean absolute successive difference
SMALLEST_SCALE = 1e-7  # log ratio; below any clock's resolution
LOG_2 = math.log(2.0)
HALVINGS = 32


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Ends in log ratio; infinite where nothing can be said yet."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half its length."""
        return (self.high - self.low) / 2


def interval(values: Sequence[float], *, pilot: Sequence[float], alpha: float) -> Interval:
    """The confidence sequence's interval after `values`; earlier `pilot` values give the first scale only."""
    x = np.asarray(values, dtype=np.float64)
    scales = predicted_scales(x, np.asarray(pilot, dtype=np.float64))
    return Interval(low=_lower(x, scales, alpha / 2), high=-_lower(-x, scales, alpha / 2))


def predicted_scales(values: Array, pilot: Array) -> Array:
    """Before each value, the scale of all earlier ones, by their mean absolute successive difference."""
    seen = np.concatenate([pilot, values])
    steps = np.abs(np.diff(seen, prepend=seen[:1]))
    means = np.cumsum(steps) / np.maximum(1, np.arange(len(seen)))
    before = np.concatenate([[0.0], means])[len(pilot) : len(seen)]
    return np.maximum(SMALLEST_SCALE, DIFFERENCE_TO_SCALE * before)


def centre(values: Sequence[float]) -> float:
    """An estimate of the centre: the mean, with what lies far from the median pulled in."""
    x = np.asarray(values, dtype=np.float64)
    middle = float(np.median(x))
    reach = CLIP * max(SMALLEST_SCALE, float(np.abs(x - middle).mean()))
    return float(np.clip(x, middle - reach, middle + reach).mean())


def log_evidence(values: Array, scales: Array, centre: float) -> float:
    """Log of the mixed martingale against "the centre is at most `centre`"; falls as `centre` rises."""
    z = np.clip((values - centre) / scales, -CLIP, CLIP)
    y = np.multiply.outer(np.array(BETS), z)
    # exp(y) / cosh(y) = 2 / (1 + exp(-2 y)), which never overflows in this form.
    logs = (LOG_2 - np.logaddexp(0.0, -2.0 * y)).sum(axis=1)
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).mean()))


def _lower(values: Array, scales: Array, alpha: float) -> float:
    """The least centre that isn't refuted from below; minus infinity when none is."""
    needed = -math.log(alpha)
    if values.size == 0:
        return -math.inf
    spread = 2 * CLIP * float(scales.max())
    low, high = float(values.min()) - spread, float(values.max()) + spread
    if log_evidence(values, scales, low) < needed:
        return -math.inf
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if log_evidence(values, scales, middle) >= needed else (low, middle)
    return low
