"""CUDA graphs of many launches, so that one sample is long against the clock's resolution."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

WARM_UP_REPLAYS = 3


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Microseconds per launch: one list per captured graph, warm-ups first and kept apart."""

    warm_up_us: tuple[tuple[float, ...], ...]
    timed_us: tuple[tuple[float, ...], ...]
    launches: int

    @property
    def median_us(self) -> float:
        """Median over the graphs of each graph's median."""
        return statistics.median(map(statistics.median, self.timed_us))

    @property
    def range_us(self) -> tuple[float, float]:
        """Smallest and largest median of a graph: two captures of one kernel differ."""
        medians = [statistics.median(samples) for samples in self.timed_us]
        return min(medians), max(medians)


def measure(calls: Sequence[Callable[[], object]], *, least: int, graphs: int, replays: int) -> Samples:
    """Capture graphs of at least `least` launches, rotating through `calls`; time each `replays` times."""
    rounds = -(-least // len(calls))
    pairs = [_one(calls, rounds, replays) for _ in range(graphs)]
    return Samples(
        warm_up_us=tuple(warm for warm, _ in pairs),
        timed_us=tuple(timed for _, timed in pairs),
        launches=rounds * len(calls),
    )


def _one(
    calls: Sequence[Callable[[], object]], rounds: int, replays: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for call in calls:
                call()
    launches = rounds * len(calls)
    times = tuple(_replay_us(graph) / launches for _ in range(WARM_UP_REPLAYS + replays))
    return times[:WARM_UP_REPLAYS], times[WARM_UP_REPLAYS:]


def _replay_us(graph: torch.cuda.CUDAGraph) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return 1e3 * float(start.elapsed_time(end))
