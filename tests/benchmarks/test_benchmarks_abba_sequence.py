"""The confidence sequence: what it covers at every moment, by simulation, and how it is put together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from coverage_study import NOISES, PILOT, ROUNDS, fast_exclusion, first_exclusion
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.abba import sequence
from benchmarks.abba.sequence import Interval

ALPHA = 0.05
TRIALS = 500
SYMMETRIC = [name for name in NOISES if "not symmetric" not in name]


@pytest.mark.parametrize("name", SYMMETRIC)
def test_it_covers_at_all_moments_together(name: str) -> None:
    random = np.random.default_rng(1)
    missed = sum(
        fast_exclusion(NOISES[name](random, ROUNDS), NOISES[name](random, PILOT), ALPHA)
        for _ in range(TRIALS)
    )
    # A rate of 5 % gives more than this in one of 10,000 repetitions; the seed is fixed.
    assert missed <= TRIALS * ALPHA + 3.8 * math.sqrt(TRIALS * ALPHA * (1 - ALPHA))


@pytest.mark.parametrize("name", SYMMETRIC)
def test_the_study_excludes_what_the_sequence_excludes(name: str) -> None:
    random = np.random.default_rng(2)
    for shift in (0.0, 0.004):
        pilot, x = NOISES[name](random, PILOT) + shift, NOISES[name](random, 40) + shift
        first = first_exclusion(x, pilot, ALPHA)
        assert fast_exclusion(x, pilot, ALPHA) == (first is not None)
        if first is not None:
            found = sequence.interval(list(x[:first]), pilot=list(pilot), alpha=ALPHA)
            assert found.low > 0 or found.high < 0


def test_a_textbook_interval_looked_at_as_often_fails_the_same_test() -> None:
    missed = 0
    for seed in range(100):
        x = NOISES["gaussian"](np.random.default_rng(seed), ROUNDS)
        n = np.arange(1, ROUNDS + 1)
        means, squares = np.cumsum(x) / n, np.cumsum(x * x) / n
        errors = np.sqrt((squares - means**2) / np.maximum(1, n - 1))
        missed += bool((np.abs(means) > 2.0 * errors)[3:].any())
    assert missed > 20


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.floats(-1, 1), st.floats(1e-3, 1e3))
def test_it_moves_and_stretches_with_the_values(values: list[float], shift: float, stretch: float) -> None:
    x = np.array(values) * 1e-2
    x += np.linspace(0, 1e-3, len(x))
    one = sequence.interval(list(x), pilot=[0.0, 0.01], alpha=ALPHA)
    moved = [0.0 * stretch + shift, 0.01 * stretch + shift]
    other = sequence.interval(list(x * stretch + shift), pilot=moved, alpha=ALPHA)
    for end, other_end in ((one.low, other.low), (one.high, other.high)):
        assert other_end == pytest.approx(end * stretch + shift, rel=1e-4, abs=1e-5 * stretch)


@given(st.lists(st.floats(-0.1, 0.1), min_size=1, max_size=60))
def test_its_ends_mirror(values: list[float]) -> None:
    one = sequence.interval(values, pilot=[0.0, 0.01], alpha=ALPHA)
    other = sequence.interval([-x for x in values], pilot=[0.0, -0.01], alpha=ALPHA)
    assert one == Interval(low=-other.high, high=-other.low)


def test_nothing_is_said_of_a_few_rounds() -> None:
    assert sequence.interval([], pilot=[], alpha=ALPHA) == Interval(low=-math.inf, high=math.inf)
    few = sequence.interval([0.01] * 5, pilot=[0.0], alpha=0.0125)
    assert (few.low, few.high) == (-math.inf, math.inf)


def test_scales_come_from_earlier_rounds_only() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0])
    changed = np.array([1.0, 2.0, 4.0, -800.0])
    pilot = np.array([0.5])
    np.testing.assert_array_equal(
        sequence.predicted_scales(x, pilot), sequence.predicted_scales(changed, pilot)
    )


def test_one_bad_neighbour_does_not_undo_a_decision() -> None:
    x = [0.01 + 0.001 * (-1) ** n for n in range(30)]
    assert sequence.interval(x, pilot=x[:3], alpha=0.01).low > 0
    assert sequence.interval([*x, -5.0], pilot=x[:3], alpha=0.01).low > 0


def test_the_centre_is_not_drawn_away_by_an_outlier() -> None:
    assert sequence.centre([0.01] * 20 + [5.0]) == pytest.approx(0.01, abs=0.05)
