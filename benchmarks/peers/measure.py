"""One shape: the kernel, all peers that are here and a streaming read, on the same cold inputs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.latency import graph, problem, stream
from benchmarks.latency.graph import Samples
from benchmarks.latency.problem import Problem, Shape
from fixtures import oracle
from fixtures.inputs import Inputs

LEAST_SAMPLE_US = 100.0
READ = "read"
Call = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Timed:
    """One contender on one shape. Without `samples`, `why` says what kept it from being timed.

    `disagreements` are output elements of the first problem, of `elements`, that aren't FP64 attention
    rounded to fp16; None of the read.
    """

    name: str
    samples: Samples | None = None
    disagreements: int | None = None
    elements: int | None = None
    why: str = ""


def shape_of(
    shape: Shape, contenders: Mapping[str, Callable[..., Any]], *, graphs: int, replays: int
) -> list[Timed]:
    """Time all of them on `shape`; the streaming read comes last, and only where Triton is."""
    device = torch.device("cuda", torch.cuda.current_device())
    count = problem.copies(shape, torch.cuda.get_device_properties(device).L2_cache_size)
    problems = [problem.make(shape, seed, device) for seed in range(count)]
    problems[0].cache.copy_(natural_codes(problems[0].cache))
    truth = oracle.attend(_inputs(problems[0], shape)).out
    take = functools.partial(_take, graphs=graphs, replays=replays)
    found = [_one(name, op, problems, shape, truth, take) for name, op in contenders.items()]
    return [*found, _read(problems, device, take)]


def natural_codes(cache: torch.Tensor) -> torch.Tensor:
    """Codes of normal numbers, uint8: of uniform codes one token takes all weight, and nothing is added."""
    random = torch.Generator(device=cache.device).manual_seed(len(cache))
    values = torch.randn(cache.shape, device=cache.device, generator=random)
    return values.to(torch.float8_e4m3fn).view(torch.uint8)


def _one(
    name: str,
    op: Callable[..., Any],
    problems: Sequence[Problem],
    shape: Shape,
    truth: torch.Tensor,
    take: Callable[[Sequence[Call]], Samples],
) -> Timed:
    scales = {"softmax_scale": shape.head_dim**-0.5, "k_scale": 1.0, "v_scale": 1.0}
    calls: list[Call] = [functools.partial(op, *p.arguments, out=p.out, **scales) for p in problems]
    first = problems[0].out.fill_(math.nan)
    try:
        for call in calls:
            call()
        torch.cuda.synchronize()
        wrong = oracle.disagreements(first.cpu(), truth)
        return Timed(name=name, samples=take(calls), disagreements=int(wrong), elements=first.numel())
    except (RuntimeError, TypeError, ValueError) as error:
        return Timed(name=name, why=" ".join(str(error).split())[:200])


def _read(
    problems: Sequence[Problem], device: torch.device, take: Callable[[Sequence[Call]], Samples]
) -> Timed:
    try:
        read = stream.reader(device)
    except RuntimeError as error:
        return Timed(name=READ, why=str(error))
    calls: list[Call] = [functools.partial(read, p.cache) for p in problems]
    calls[0]()
    torch.cuda.synchronize()
    return Timed(name=READ, samples=take(calls))


def _take(calls: Sequence[Call], *, graphs: int, replays: int) -> Samples:
    """Graphs of at least 100 µs, and of one sweep over the problems."""
    least = max(1, math.ceil(LEAST_SAMPLE_US / _eager_us(calls)))
    return graph.measure(calls, least=least, graphs=graphs, replays=replays)


def _eager_us(calls: Sequence[Call]) -> float:
    """Roughly: what a graph of one sweep takes a call."""
    return graph.measure(calls, least=1, graphs=1, replays=1).median_us


def _inputs(one: Problem, shape: Shape) -> Inputs:
    return Inputs(
        q=one.q,
        k_cache=one.cache[:, 0],
        v_cache=one.cache[:, 1],
        block_table=one.block_table,
        row_lens=one.row_lens,
        softmax_scale=shape.head_dim**-0.5,
        k_scale=1.0,
        v_scale=1.0,
    )
