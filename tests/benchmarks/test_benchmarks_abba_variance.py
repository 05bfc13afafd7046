"""Variance components against a machine that was made with known ones."""

from __future__ import annotations

import random

import pytest
from simulated_machine import Noise, SimulatedMachine

from benchmarks.abba import engine, orders, variance
from benchmarks.abba.sampling import Round
from benchmarks.abba.variance import Components, Costs


def rounds(
    noise: Noise, *, seed: int = 1, count: int = 150, blocks: int = 4, ratio: float = 1.0
) -> list[Round]:
    machine, source = SimulatedMachine(seed=seed, noise=noise, ratio=ratio), random.Random(seed)
    made = []
    for _ in range(count):
        one, other = orders.draw(source, blocks)
        made.append(Round(pairs=(engine.measure(machine, one), engine.measure(machine, other))))
    return made


def test_each_level_is_recovered() -> None:
    found = variance.components([rounds(Noise(replay=0.004, block=0.003, instance=0.005))])
    # Of a ratio: two sides' captures, two sides' block effects, four replays of which each side averages two.
    assert found.instance == pytest.approx(2 * 0.005**2, rel=0.3)
    assert found.block == pytest.approx(2 * 0.003**2, rel=0.3)
    assert found.replay == pytest.approx(0.004**2, rel=0.3)
    assert found.process is None


def test_shares_add_up() -> None:
    shares = variance.components([rounds(Noise(), count=10)]).shares
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["instance"] > 0.9
    silent = Components(replay=0.0, block=0.0, instance=0.0, order_effect=0.0)
    assert set(silent.shares.values()) == {0.0}


def test_the_capture_order_is_told_apart_from_the_captures() -> None:
    found = variance.components([rounds(Noise(replay=1e-4, instance=1e-4, alternating=0.006), blocks=2)])
    assert abs(found.order_effect) == pytest.approx(0.006, rel=0.02)
    assert found.instance < 1e-7


def test_processes_that_differ_are_seen_when_several_were_measured() -> None:
    quiet = Noise(replay=1e-4, instance=1e-4)
    many = [rounds(quiet, seed=seed, count=5, ratio=1 + 0.01 * (seed % 2)) for seed in range(8)]
    found = variance.components(many)
    assert found.process == pytest.approx(0.01**2 / 4, rel=0.3)
    assert found.shares["process"] > 0.9
    alike = variance.components([rounds(quiet, seed=seed, count=5) for seed in range(8)])
    assert alike.process is not None and alike.process < 1e-7


@pytest.mark.parametrize(
    ("replay", "instance", "expected"),
    [(1e-4, 1e-12, variance.MOST_BLOCKS), (1e-12, 1e-4, 1), (1e-4, 1e-4, 2)],
)
def test_blocks_are_bought_where_they_help(replay: float, instance: float, expected: int) -> None:
    found = Components(replay=replay, block=0.0, instance=instance, order_effect=0.0)
    assert variance.best_blocks(found, Costs(pair_s=0.004, block_s=0.001)) == expected
