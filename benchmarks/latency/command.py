"""`python -m benchmarks latency`: the operation and a streaming read of the same bytes, cold L2, one run."""

from __future__ import annotations

import argparse
import functools
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import grouped_attention as ga
from artifacts.errors import ArtifactsError
from artifacts.sides import Binary, Side, from_path
from benchmarks.latency import graph, problem, stream
from benchmarks.latency.graph import Samples
from benchmarks.latency.problem import Problem, Shape
from evidence import ending, record, store
from evidence.ending import Verdict
from evidence.record import Reason
from grouped_attention.load import arch_of_gpu

LEAST_SAMPLE_US = 100.0
FASTEST_LAUNCH_US = 2.0  # shorter than any launch: bounds how many it takes to fill a sample


@dataclass(frozen=True, kw_only=True)
class Row:
    """One context's result; times are medians in µs per call, `read_us` of a kernel that only reads."""

    shape: Shape
    copies: int
    kernel: Samples
    read: Samples
    repeatable: bool

    @property
    def ratio(self) -> float:
        """Kernel time over the read's."""
        return self.kernel.median_us / self.read.median_us


def add_options(verb: argparse.ArgumentParser) -> None:
    """The options of `latency`."""
    verb.add_argument(
        "--artifact", type=Path, required=True, metavar="DIR", help="a cuda artifact or library"
    )
    verb.add_argument("--contexts", default="8192,65536,131072,262144", help="tokens, with commas")
    verb.add_argument("--rows", type=int, default=5)
    verb.add_argument("--page", type=int, default=848)
    verb.add_argument("--heads", type=int, default=6)
    verb.add_argument("--head-dim", type=int, default=256)
    verb.add_argument("--graphs", type=int, default=8, help="captures per context; default 8")
    verb.add_argument("--replays", type=int, default=30, help="timed replays per capture; default 30")
    verb.add_argument("--json", type=Path, metavar="PATH", help="write the record there too")


def run(options: argparse.Namespace) -> int:
    """Measure, print the table, keep the record. Without a GPU nothing is measured: `unknown`."""
    if not torch.cuda.is_available():
        return ending.end(
            Verdict(word="unknown", code="no-gpu", text="latency is measured on a GPU, and there is none"),
            options.json,
        )
    try:
        side = from_path(options.artifact)
        binary = _cuda(side)
    except ArtifactsError as error:
        return ending.end(Verdict(word="unknown", code=error.code, text=error.text), options.json)
    started, tick = datetime.now(UTC), time.perf_counter()
    rows = [_measure(binary, shape, options) for shape in _shapes(options)]
    print(table(rows))
    reason = _conclude(rows)
    made = record.make(
        kind="latency",
        artifact=record.subject_of(binary, revision=side.revision, dirty=bool(side.dirty)),
        inputs="",
        selection={"rows": options.rows, "page": options.page, "l2": "cold"},
        outcome="pass" if reason.code == "measured" else "fail",
        reasons=(reason,),
        results={"contexts": [_json(row) for row in rows]},
        started_at=started,
        duration_s=time.perf_counter() - tick,
    )
    print(f"record: {store.append(made)}")
    ending.write(options.json, record.as_json(made))
    word = "admitted" if reason.code == "measured" else "rejected"
    return ending.end(Verdict(word=word, code=reason.code, text=reason.text), options.json)


def table(rows: list[Row]) -> str:
    """One line per context."""
    lines = [f"{'context':>8} {'kernel µs':>10} {'captures':>15} {'read µs':>9} {'ratio':>6} {'GB/s':>6}"]
    for row in rows:
        low, high = row.kernel.range_us
        speed = row.shape.kv_bytes / row.kernel.median_us / 1e3
        lines.append(
            f"{row.shape.context:>8} {row.kernel.median_us:>10.2f} {f'{low:.2f}-{high:.2f}':>15} "
            f"{row.read.median_us:>9.2f} {row.ratio:>6.2f} {speed:>6.0f}"
        )
    return "\n".join(lines)


def _shapes(options: argparse.Namespace) -> list[Shape]:
    contexts = [int(text) for text in options.contexts.split(",")]
    fixed = {"rows": options.rows, "heads": options.heads, "head_dim": options.head_dim, "page": options.page}
    return [Shape(context=context, **fixed) for context in contexts]


def _cuda(side: Side) -> Binary:
    for binary in side.binaries:
        if binary.backend == "cuda" and (binary.arch == arch_of_gpu() or len(side.binaries) == 1):
            return binary
    raise ArtifactsError("no-binary", f"{side.origin} holds no cuda library for {arch_of_gpu()}")


def _measure(binary: Binary, shape: Shape, options: argparse.Namespace) -> Row:
    device = torch.device("cuda", torch.cuda.current_device())
    count = problem.copies(shape, torch.cuda.get_device_properties(device).L2_cache_size)
    problems = [problem.make(shape, seed, device) for seed in range(count)]
    extension = ga.load(binary.library)
    space = extension.workspace(
        "grouped_e4m3_fp32", heads=shape.heads, head_dim=shape.head_dim, device=device
    )
    op = functools.partial(extension.grouped_e4m3_fp32, softmax_scale=shape.head_dim**-0.5, workspace=space)
    calls = [functools.partial(op, *p.arguments, out=p.out) for p in problems]
    read = stream.reader(device)
    reads = [functools.partial(read, p.cache) for p in problems]
    truth = [call().clone() for call in calls]
    reads[0]()
    torch.cuda.synchronize()
    least = int(LEAST_SAMPLE_US / FASTEST_LAUNCH_US)
    take = functools.partial(graph.measure, least=least, graphs=options.graphs, replays=options.replays)
    _poison(problems)
    kernel = take(calls)
    return Row(shape=shape, copies=count, kernel=kernel, read=take(reads), repeatable=_same(problems, truth))


def _poison(problems: list[Problem]) -> None:
    for one in problems:
        one.out.fill_(float("nan"))


def _same(problems: list[Problem], truth: list[torch.Tensor]) -> bool:
    pairs = zip(problems, truth, strict=True)
    return all(torch.equal(p.out.view(torch.int16), t.view(torch.int16)) for p, t in pairs)


def _conclude(rows: list[Row]) -> Reason:
    wrong = [str(row.shape.context) for row in rows if not row.repeatable]
    if wrong:
        text = f"after the timed replays the outputs differ from an eager call's at {', '.join(wrong)}"
        return Reason(code="bits-differ", text=text)
    ratios = ", ".join(f"{row.shape.context}: {row.kernel.median_us:.1f} µs" for row in rows)
    return Reason(code="measured", text=f"{ratios}; no comparison with a base")


def _json(row: Row) -> dict[str, Any]:
    return asdict(row) | {
        "ratio": row.ratio,
        "kernel_us": row.kernel.median_us,
        "read_us": row.read.median_us,
    }
