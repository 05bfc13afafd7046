"""Both sides as CUDA graphs of many launches, replayed between events."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from benchmarks.abba import loads, roofline, workload
from benchmarks.abba.nvml import Monitor
from benchmarks.abba.sampling import Instance, Leg, State
from benchmarks.abba.subjects import Contender
from benchmarks.latency import problem
from benchmarks.latency.problem import Shape

LEAST_SAMPLE_US = 100.0  # shorter samples read the clock's own 10 µs and its noise
TRIAL_REPLAYS = 3
Mark = tuple[torch.cuda.Event, torch.cuda.Event]


@dataclass(frozen=True, kw_only=True)
class Graph:
    """One capture of a side."""

    side: str
    graph: torch.cuda.CUDAGraph


class CudaBench:
    """A `sampling.Bench` on the current GPU. With `hot` one set of inputs is read again and again."""

    def __init__(self, sides: Mapping[str, Contender], shape: Shape, *, hot: bool) -> None:
        device = torch.device("cuda", torch.cuda.current_device())
        properties = torch.cuda.get_device_properties(device)
        copies = 1 if hot else problem.copies(shape, properties.L2_cache_size)
        self.floor_us = roofline.floor_us(shape.kv_bytes, roofline.peak(properties), hot=hot)
        self.monitor = Monitor(_bus_id(properties))
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(self._stream):
            self._work = workload.make(sides, shape, copies=copies, device=device)
        self._stream.synchronize()
        self.launches, self._captures = copies, 0
        # The faster side decides, so that its samples too are long enough.
        sweep_us = min(self._trial_us(side) for side in sides)
        self.launches = copies * max(1, math.ceil(LEAST_SAMPLE_US / sweep_us))

    def capture(self, side: str) -> Instance:
        """A new graph of `launches` calls that rotate through the inputs."""
        graph, calls = torch.cuda.CUDAGraph(), self._work.calls[side][workload.placement(self._captures)]
        self._captures += 1
        with torch.cuda.stream(self._stream), workload.named_failures([side]):
            graph.capture_begin()
            for at in range(self.launches):
                calls[at % len(calls)]()
            graph.capture_end()
        return Graph(side=side, graph=graph)

    def play(self, order: Sequence[Instance], replays: int) -> tuple[Leg, ...]:
        """Queue all turns at once, behind an untimed replay that keeps the GPU busy meanwhile; then wait."""
        graphs = [instance for instance in order if isinstance(instance, Graph)]
        with torch.cuda.stream(self._stream):
            graphs[0].graph.replay()
            queued = [self._queue(graph, replays) for graph in graphs]
        self._stream.synchronize()
        return tuple(self._leg(graph, *turn) for graph, turn in zip(graphs, queued, strict=True))

    @property
    def note(self) -> str:
        """What the monitor can't see."""
        return self.monitor.note

    def state(self) -> State:
        """By NVML."""
        return self.monitor.state()

    def loaded(self) -> int:
        """Modules and shared objects of the process."""
        return loads.count()

    def seconds(self) -> float:
        """The monotonic clock."""
        return time.perf_counter()

    def _queue(self, graph: Graph, replays: int) -> tuple[list[Mark], torch.Tensor]:
        self._work.poison()
        marks = [_timed(graph) for _ in range(replays)]
        return marks, self._work.wrong(graph.side)

    def _leg(self, graph: Graph, marks: list[Mark], wrong: torch.Tensor) -> Leg:
        times = tuple(1e3 * float(start.elapsed_time(end)) / self.launches for start, end in marks)
        return Leg(side=graph.side, times_us=times, wrong=int(wrong))

    def _trial_us(self, side: str) -> float:
        """One sweep over the inputs, in µs."""
        instance = self.capture(side)
        legs = self.play([instance] * TRIAL_REPLAYS, 1)
        return min(leg.times_us[0] for leg in legs) * self.launches


def _timed(graph: Graph) -> Mark:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    start.record()
    graph.graph.replay()
    end.record()
    return start, end


def _bus_id(properties: object) -> str:
    domain, bus, device = (getattr(properties, f"pci_{name}_id", 0) for name in ("domain", "bus", "device"))
    return f"{domain:08X}:{bus:02X}:{device:02X}.0"
