"""The large form of the coverage tests: `python tests/benchmarks/support/coverage_study.py [TRIALS]`.

Prints how often the confidence sequence ever misses the truth within 200 rounds, and beside it that of the
Gaussian-mixture t-sequence (Lai 1976; Wang and Ramdas 2023), which assumes normality.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np

from benchmarks.abba import sequence
from benchmarks.abba.sequence import Array

Noise = Callable[[np.random.Generator, int], Array]
ROUNDS, PILOT = 200, 3

NOISES: dict[str, Noise] = {
    "gaussian": lambda r, n: 0.004 * r.standard_normal(n),
    "t with 2 degrees of freedom": lambda r, n: 0.002 * r.standard_t(2, n),
    "cauchy": lambda r, n: 0.002 * r.standard_cauchy(n),
    "two-valued": lambda r, n: r.choice([-0.006, 0.006], n) + 0.0003 * r.standard_normal(n),
    "exactly two-valued": lambda r, n: r.choice([-0.006, 0.006], n),
    "three-valued": lambda r, n: r.choice([-0.006, 0.0, 0.0, 0.006], n) + 0.0003 * r.standard_normal(n),
    "outliers": lambda r, n: 0.002 * r.standard_normal(n) + (r.random(n) < 0.05) * r.laplace(0.0, 0.1, n),
    "growing scale": lambda r, n: 0.001 * np.arange(1, n + 1) * r.standard_normal(n),
    "calm, then loud": lambda r, n: np.where(np.arange(n) < 20, 1e-5, 1e-2) * r.standard_normal(n),
    "skewed (not symmetric)": lambda r, n: 0.003 * (r.exponential(1.0, n) - 1.0),
}


def first_exclusion(values: Array, pilot: Array, alpha: float) -> int | None:
    """After how many rounds 0 is excluded, None if never."""
    scales, needed = sequence.predicted_scales(values, pilot), -math.log(alpha / 2)
    for count in range(1, len(values) + 1):
        if any(sequence.log_evidence(s * values[:count], scales[:count], 0.0) >= needed for s in (1, -1)):
            return count
    return None


def fast_exclusion(values: Array, pilot: Array, alpha: float) -> bool:
    """Whether 0 is ever excluded; the same sums as `first_exclusion`, cumulated."""
    z = np.clip(values / sequence.predicted_scales(values, pilot), -sequence.CLIP, sequence.CLIP)
    for sign in (1, -1):
        y = np.multiply.outer(sign * np.array(sequence.BETS), z)
        logs = np.cumsum(math.log(2.0) - np.logaddexp(0.0, -2.0 * y), axis=1)
        mixed = np.logaddexp.reduce(logs, axis=0) - math.log(len(sequence.BETS))
        if mixed.max() >= -math.log(alpha / 2):
            return True
    return False


def t_exclusion(values: Array, alpha: float, prior: float = 0.1, least: int = 3) -> bool:
    """Whether the t-sequence ever excludes 0, from its third round on."""
    n = np.arange(1, len(values) + 1)
    total, squares = np.cumsum(values), np.cumsum(values**2)
    rest = np.maximum(squares - prior * total**2 / (1 + n * prior), 1e-300)
    evidence = -0.5 * np.log1p(n * prior) + n / 2 * (np.log(squares) - np.log(rest))
    return bool((evidence[least - 1 :] >= -math.log(alpha)).any())


def main(trials: int) -> None:
    """Print the table."""
    for alpha in (0.05, 0.0125):
        for name, noise in NOISES.items():
            random = np.random.default_rng(20)
            mine = theirs = 0
            for _ in range(trials):
                pilot, values = noise(random, PILOT), noise(random, ROUNDS)
                mine += fast_exclusion(values, pilot, alpha)
                theirs += t_exclusion(values, alpha)
            print(f"| {name} | {alpha:.4f} | {mine / trials:.4f} | {theirs / trials:.4f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
