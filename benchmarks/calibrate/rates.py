"""Rates with exact bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LEVEL = 0.95


class StatisticsError(RuntimeError):
    """scipy is missing; the message says what to install."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """`hits` of `trials`; `low` and `high` are Clopper-Pearson bounds, each one-sided at 95 %."""

    hits: int
    trials: int
    low: float
    high: float


def rate(hits: int, trials: int) -> Rate:
    """The rate of independent trials; 0 to 1 is all that none can say."""
    if trials == 0:
        return Rate(hits=0, trials=0, low=0.0, high=1.0)
    beta = _scipy_stats().beta
    low = 0.0 if hits == 0 else float(beta.ppf(1 - LEVEL, hits, trials - hits + 1))
    high = 1.0 if hits == trials else float(beta.ppf(LEVEL, hits + 1, trials - hits))
    return Rate(hits=hits, trials=trials, low=low, high=high)


def t_quantile(level: float, freedom: int) -> float:
    """Student's quantile."""
    return float(_scipy_stats().t.ppf(level, freedom))


def _scipy_stats() -> Any:
    try:
        from scipy import stats
    except ImportError as error:
        raise StatisticsError("calibrating needs scipy: pip install scipy") from error
    return stats
