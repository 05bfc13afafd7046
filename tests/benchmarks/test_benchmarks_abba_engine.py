"""The engine on a machine whose noise is known: it finds what is there, and nothing where nothing is."""

from __future__ import annotations

import math
import random

import pytest
from simulated_machine import Noise, SimulatedMachine

from benchmarks.abba import engine
from benchmarks.abba.decision import Rule
from benchmarks.abba.engine import Comparison
from benchmarks.abba.variance import Costs

RULE = Rule(comparisons=4)
BUDGET_S = 2.0

H200_8K = Noise(replay=0.0005, block=0.0005, instance=0.002, alternating=0.006)
LOUD = Noise(replay=0.002, instance=0.003, neighbour_rate=0.05)
DRIFTING = Noise(replay=0.001, instance=0.002, drift_per_s=0.05)
HEAVY = Noise(replay=0.001, instance=0.002, tail=2.5)
TWO_VALUED = Noise(replay=0.0002, instance=0.0, two_valued=0.006)
NOISES = {"8K": H200_8K, "loud": LOUD, "drifting": DRIFTING, "heavy": HEAVY, "two-valued": TWO_VALUED}


def compared(seed: int, ratio: float, noise: Noise, budget_s: float = BUDGET_S) -> Comparison:
    machine = SimulatedMachine(seed=seed, ratio=ratio, noise=noise)
    return engine.compare(machine, RULE, budget_s=budget_s, source=random.Random(seed))


@pytest.mark.parametrize("name", NOISES)
def test_a_kernel_is_as_fast_as_itself(name: str) -> None:
    words = [compared(seed, 1.0, NOISES[name], budget_s=0.6).word for seed in range(20)]
    assert sum(word in ("slower", "faster") for word in words) <= 1, words


@pytest.mark.parametrize("name", NOISES)
def test_a_slowdown_of_one_percent_is_found(name: str) -> None:
    found = [compared(seed, 1.01, NOISES[name]) for seed in range(5)]
    assert {comparison.word for comparison in found} == {"slower"}
    assert all(comparison.rejects for comparison in found)


def test_a_speed_up_is_found_and_does_not_reject() -> None:
    found = compared(3, 0.99, H200_8K)
    assert (found.word, found.rejects) == ("faster", False)


def test_a_fifth_of_a_percent_is_found_within_the_margin() -> None:
    words = [compared(seed, 1.002, H200_8K).word for seed in range(10)]
    assert words.count("slower") >= 9, words


def test_the_same_is_said_at_the_resolution() -> None:
    found = compared(1, 1.0, H200_8K)
    assert found.word == "same"
    assert found.interval.half_width <= RULE.resolution
    assert found.seconds < BUDGET_S, "it stops when it is decided"


def test_a_budget_that_is_spent_leaves_it_undecided() -> None:
    noisy = Noise(replay=0.05, instance=0.05)
    found = compared(1, 1.0, noisy, budget_s=0.3)
    assert found.word == "undecided"
    assert found.seconds < 0.5


def test_a_budget_for_nothing_is_unknown() -> None:
    found = compared(1, 1.5, H200_8K, budget_s=0.0)
    assert (found.word, found.rejects) == ("unknown", False)
    assert all(one.pilot for one in found.rounds), "the pilot is kept"


def test_pilot_and_warm_ups_are_kept_and_not_counted() -> None:
    found = compared(1, 1.0, H200_8K, budget_s=0.2)
    assert [one.pilot for one in found.rounds[: engine.PILOT_ROUNDS + 1]] == [True, True, True, False]
    assert not any(one.pilot for one in found.counted)
    for pair in (pair for one in found.rounds for pair in one.pairs):
        assert [block.warm_up for block in pair.blocks][:2] == [True, False]
        assert not any(block.warm_up for block in pair.kept)


def test_mirrored_rounds_cancel_what_alternates_with_the_capture_order() -> None:
    only_alternating = Noise(replay=1e-5, instance=0.0, alternating=0.006)
    found = compared(1, 1.0, only_alternating)
    assert found.components is not None
    assert abs(found.components.order_effect) > 0.005
    assert all(abs(one.log_ratio) < 1e-4 for one in found.counted)
    assert any(abs(pair.log_ratio) > 0.005 for one in found.counted for pair in one.pairs)


def test_the_estimate_is_the_true_ratio() -> None:
    values = [one.log_ratio for one in compared(5, 1.01, H200_8K).rounds if one.valid]
    assert math.exp(sum(values) / len(values)) == pytest.approx(1.01, abs=0.002)


def test_the_design_follows_the_noise() -> None:
    noisy_replays = compared(1, 1.0, Noise(replay=0.01, instance=0.0))
    noisy_captures = compared(1, 1.0, Noise(replay=0.0001, instance=0.01))
    assert noisy_replays.design is not None and noisy_captures.design is not None
    assert noisy_replays.design.kept_blocks > noisy_captures.design.kept_blocks == 1
    assert isinstance(noisy_captures.design.costs, Costs)


def test_a_small_budget_buys_rounds_rather_than_blocks() -> None:
    noisy = Noise(replay=0.01, instance=0.0)
    rich, poor = compared(1, 1.0, noisy), compared(1, 1.0, noisy, budget_s=0.35)
    assert rich.design is not None and poor.design is not None
    assert poor.design.kept_blocks < rich.design.kept_blocks
    assert len(poor.counted) >= 20


def test_the_same_seeds_give_the_same_samples() -> None:
    assert compared(9, 1.0, LOUD, budget_s=0.3).rounds == compared(9, 1.0, LOUD, budget_s=0.3).rounds
