"""A machine whose noise is known, level by level: it is a `benchmarks.abba.sampling.Bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.abba.sampling import CANDIDATE, Instance, Leg, State


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Deviations are of a log time. `alternating`: what every other capture adds. `tail`: degrees of freedom.

    `neighbour_rate` is the chance that a neighbour makes a sample longer, by up to `neighbour_size`.
    """

    replay: float = 0.0005
    block: float = 0.0
    instance: float = 0.002
    alternating: float = 0.0
    two_valued: float = 0.0
    drift_per_s: float = 0.0
    tail: float | None = None
    neighbour_rate: float = 0.0
    neighbour_size: float = 0.3


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """An instance with the effect that its capture drew."""

    side: str
    effect: float


@dataclass(kw_only=True)
class SimulatedMachine:
    """`ratio` is the candidate's true time over the base's."""

    seed: int
    ratio: float = 1.0
    noise: Noise = field(default_factory=Noise)
    base_us: float = 20.0
    floor_us: float = 1.0
    launches: int = 10
    note: str = ""
    capture_s: float = 0.002
    throttled_blocks: frozenset[int] = frozenset()
    loads_at_block: int | None = None
    errors_at_block: int | None = None
    wrong: Mapping[str, int] = field(default_factory=dict)
    now_s: float = 0.0
    blocks: int = 0
    captures: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def capture(self, side: str) -> Instance:
        self.now_s += self.capture_s
        self.captures += 1
        effect = self._draw(self.noise.instance) + self.noise.alternating * (self.captures % 2)
        effect += self.noise.two_valued * float(self.random.integers(2))
        return Simulated(side=side, effect=effect)

    def play(self, order: Sequence[Instance], replays: int) -> tuple[Leg, ...]:
        self.blocks += 1
        shift = {instance.side: self._draw(self.noise.block) for instance in order}
        return tuple(self._leg(instance, shift[instance.side], replays) for instance in order)

    def state(self) -> State:
        throttle = ("software power cap",) if self.blocks in self.throttled_blocks else ()
        errors = int(self.errors_at_block is not None and self.blocks >= self.errors_at_block)
        return State(sm_mhz=1980, throttle=throttle, errors=errors)

    def loaded(self) -> int:
        return 100 + int(self.loads_at_block is not None and self.blocks >= self.loads_at_block)

    def seconds(self) -> float:
        return self.now_s

    def _leg(self, instance: Instance, shift: float, replays: int) -> Leg:
        assert isinstance(instance, Simulated)
        times = tuple(self._sample_us(instance, shift) for _ in range(replays))
        return Leg(side=instance.side, times_us=times, wrong=self.wrong.get(instance.side, 0))

    def _sample_us(self, instance: Simulated, shift: float) -> float:
        log = instance.effect + shift + self._draw(self.noise.replay) + self.noise.drift_per_s * self.now_s
        if self.random.random() < self.noise.neighbour_rate:
            log += self.noise.neighbour_size * self.random.random()
        factor = self.ratio if instance.side == CANDIDATE else 1.0
        time_us = self.base_us * factor * float(np.exp(log))
        self.now_s += time_us * self.launches * 1e-6
        return time_us

    def _draw(self, deviation: float) -> float:
        tail = self.noise.tail
        unit = self.random.standard_normal() if tail is None else self.random.standard_t(tail)
        return deviation * float(unit)
