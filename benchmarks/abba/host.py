"""Both sides on a CPU: a test of the instrument, which says nothing of the kernel.

The clock is the process's CPU time, not the wall's: neighbours on the same cores are no part of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from benchmarks.abba import loads, roofline, workload
from benchmarks.abba.sampling import Instance, Leg, State
from benchmarks.abba.subjects import Contender
from benchmarks.latency.problem import Shape

LEAST_SAMPLE_US = 100.0
COLD_COPIES = 2  # a token of the GPU's rotation: what is cold in a CPU is not looked into


@dataclass(frozen=True, kw_only=True)
class HostInstance:
    """A CPU captures nothing: instances differ in the workspace that they use."""

    side: str
    workspace: int


class HostBench:
    """A `sampling.Bench` that calls the sides one after the other on this thread."""

    note = ""

    def __init__(self, sides: Mapping[str, Contender], shape: Shape, *, hot: bool) -> None:
        copies = 1 if hot else COLD_COPIES
        self._work = workload.make(sides, shape, copies=copies, device=torch.device("cpu"))
        self.floor_us = roofline.floor_us(shape.kv_bytes, roofline.HOST_PEAK, hot=hot)
        quickest = min(self._once(side) for side in sides)
        self._sweeps = max(1, -(-int(LEAST_SAMPLE_US) // max(1, int(quickest))))
        self.launches = self._sweeps * copies
        self._captures = 0

    def capture(self, side: str) -> Instance:
        """The side, and the workspace that both sides of this pair use."""
        made = HostInstance(side=side, workspace=workload.placement(self._captures))
        self._captures += 1
        return made

    def play(self, order: Sequence[Instance], replays: int) -> tuple[Leg, ...]:
        """Take turns; outputs are poisoned before and compared after, outside the timed region."""
        turns = [instance for instance in order if isinstance(instance, HostInstance)]
        return tuple(self._leg(turn, replays) for turn in turns)

    def state(self) -> State:
        """A CPU's state isn't read."""
        return State()

    def loaded(self) -> int:
        """Modules and shared objects."""
        return loads.count()

    def seconds(self) -> float:
        """The monotonic clock."""
        return time.perf_counter()

    def _leg(self, turn: HostInstance, replays: int) -> Leg:
        self._work.poison()
        with workload.named_failures([turn.side]):
            times = tuple(self._sample_us(turn) for _ in range(replays))
        return Leg(side=turn.side, times_us=times, wrong=int(self._work.wrong(turn.side)))

    def _sample_us(self, turn: HostInstance) -> float:
        calls, sweeps = self._work.calls[turn.side][turn.workspace], range(self._sweeps)
        start = time.process_time_ns()
        for _ in sweeps:
            for call in calls:
                call()
        return (time.process_time_ns() - start) / 1e3 / self.launches

    def _once(self, side: str) -> float:
        start = time.process_time_ns()
        with workload.named_failures([side]):
            for call in self._work.calls[side][0]:
                call()
        return (time.process_time_ns() - start) / 1e3
