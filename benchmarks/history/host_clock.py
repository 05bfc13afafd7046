"""CPU time of one library's calls, by the engine that `abba` uses on a CPU."""

from __future__ import annotations

import statistics
from pathlib import Path

import torch

from benchmarks.abba import subjects
from benchmarks.abba.host import HostBench
from benchmarks.abba.sampling import BASE, CANDIDATE
from benchmarks.history import protocol
from benchmarks.history.measure import UnmeasuredError
from benchmarks.latency.problem import Shape

TURNS = 3


def times_us(artifact: Path) -> dict[str, list[float]]:
    """Per context, `HOST_SAMPLES` medians in µs; UnmeasuredError when the outputs change between calls."""
    torch.set_num_threads(1)
    return {str(context): _context(artifact, context) for context in protocol.HOST_CONTEXTS}


def _context(artifact: Path, context: int) -> list[float]:
    shape = Shape(
        rows=protocol.ROWS,
        heads=protocol.HEADS,
        head_dim=protocol.HEAD_DIM,
        page=protocol.PAGE,
        context=context,
    )
    contender = subjects.candidate(str(artifact), backend="host", arch="sm_70")
    # The engine wants two sides; only one of them is timed.
    bench = HostBench({BASE: contender, CANDIDATE: contender}, shape, hot=False)
    return [_sample(bench) for _ in range(protocol.HOST_SAMPLES)]


def _sample(bench: HostBench) -> float:
    legs = bench.play([bench.capture(CANDIDATE)], TURNS)
    if any(leg.wrong for leg in legs):
        raise UnmeasuredError("bits-differ", "the outputs after timing aren't an untimed call's")
    return statistics.median(time for leg in legs for time in leg.times_us)
