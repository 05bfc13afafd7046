"""The operation on a stored real input, to be timed: poisoned before, compared with its golden after."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.latency.problem import L2_MULTIPLE
from fixtures import golden, groups
from fixtures import inputs as fixture_inputs
from fixtures.groups import Group
from fixtures.inputs import Inputs

OP = "grouped_e4m3_fp32"
CONTEXTS = (8192, 65536, 131072, 262144)
HOST_CONTEXTS = (8192,)
ROWS, HEADS, HEAD_DIM, PAGE = 5, 6, 256, 848
LEAST_LAUNCHES = 50  # of at least 2 µs each: long against the host's clock and a launch's own 10 µs
POISON = 0x7E5A  # a NaN that no kernel writes


@dataclass(frozen=True, kw_only=True)
class Subject:
    """`run` makes `launches` calls and waits for them. Outputs are int16 bits [copies, R, H, D]."""

    run: Callable[[], object]
    launches: int
    outputs: torch.Tensor
    expected: torch.Tensor

    def poison(self) -> None:
        """Overwrite all outputs, and wait until that is done."""
        self.outputs.fill_(POISON)
        if self.outputs.is_cuda:
            torch.cuda.synchronize(self.outputs.device)

    def wrong(self) -> int:
        """How many output elements aren't the golden's."""
        return int((self.outputs != self.expected).sum())


@functools.cache
def group(context: int) -> Group:
    """The stored group of this context that looks most like the shape of the other timings."""
    fitting = [
        one
        for one in groups.load("all")
        if (one.context, one.rows, one.heads, one.head_dim) == (context, ROWS, HEADS, HEAD_DIM)
    ]
    return min(fitting, key=lambda one: (abs(one.page - PAGE), one.id))


def make(extension: Any, context: int) -> Subject:
    """The library's operation at one context: a CUDA graph of many launches, or plain calls on a CPU.

    FixtureError where there is no golden for the library's architecture.
    """
    chosen, device = group(context), _device(extension)
    bits = golden.read(extension.arch, chosen.id).out.view(torch.int16).to(device)
    copies = _copies(context, device)
    inputs = [fixture_inputs.materialise(chosen, device=device) for _ in range(copies)]
    out = torch.empty((copies, *inputs[0].q.shape), dtype=torch.float16, device=device)
    sizes = {"heads": HEADS, "head_dim": HEAD_DIM, "device": device}
    prepare = _plain if device.type == "cpu" else _graph
    run, launches = prepare(extension, inputs, out, sizes)
    return Subject(run=run, launches=launches, outputs=out.view(torch.int16), expected=bits)


def _device(extension: Any) -> torch.device:
    if extension.backend == "host":
        return torch.device("cpu")
    return torch.device("cuda", torch.cuda.current_device())


def _copies(context: int, device: torch.device) -> int:
    """As many inputs as find the L2 cold, as each layer of a model does; one on a CPU."""
    if device.type == "cpu":
        return 1
    cache_bytes = L2_MULTIPLE * torch.cuda.get_device_properties(device).L2_cache_size
    return max(2, -(-cache_bytes // (2 * context * HEAD_DIM)))


def _calls(
    extension: Any, inputs: Sequence[Inputs], out: torch.Tensor, workspace: Any
) -> list[Callable[[], object]]:
    op = getattr(extension, OP)
    return [
        functools.partial(
            op,
            one.q,
            one.k_cache,
            one.v_cache,
            one.block_table,
            one.row_lens,
            softmax_scale=one.softmax_scale,
            k_scale=one.k_scale,
            v_scale=one.v_scale,
            out=out[at],
            workspace=workspace,
        )
        for at, one in enumerate(inputs)
    ]


def _all(calls: Sequence[Callable[[], object]]) -> None:
    for call in calls:
        call()


def _plain(
    extension: Any, inputs: Sequence[Inputs], out: torch.Tensor, sizes: dict[str, Any]
) -> tuple[Callable[[], object], int]:
    """One call for each input."""
    calls = _calls(extension, inputs, out, extension.workspace(OP, **sizes))
    return functools.partial(_all, calls), len(calls)


def _graph(
    extension: Any, inputs: Sequence[Inputs], out: torch.Tensor, sizes: dict[str, Any]
) -> tuple[Callable[[], object], int]:
    """One capture of enough rounds over all inputs, after one that isn't captured."""
    stream = torch.cuda.Stream(out.device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(out.device))
    graph, rounds = torch.cuda.CUDAGraph(), -(-LEAST_LAUNCHES // len(inputs))
    with torch.cuda.stream(stream):
        calls = _calls(extension, inputs, out, extension.workspace(OP, **sizes))
        _all(calls)
        stream.synchronize()
        graph.capture_begin()
        for _ in range(rounds):
            _all(calls)
        graph.capture_end()
    return functools.partial(_replay, graph, stream), rounds * len(inputs)


def _replay(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream) -> None:
    with torch.cuda.stream(stream):
        graph.replay()
    stream.synchronize()
