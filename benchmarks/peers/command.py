"""`python -m benchmarks peers`: the kernel beside other implementations of the same work."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from artifacts import ArtifactsError
from benchmarks.abba import options as shared
from benchmarks.abba import subjects
from benchmarks.abba.subjects import OP, Contender
from benchmarks.latency.problem import Shape
from benchmarks.peers import catalogue, measure, table
from benchmarks.peers.measure import Timed
from evidence import ending, record, store
from evidence.ending import Verdict
from evidence.record import Reason
from grouped_attention.load import arch_of_gpu

CONTEXTS = (8192, 65536, 131072, 262144)
PAGES = (848, 16)
Result = tuple[Shape, list[Timed]]


def add_options(verb: argparse.ArgumentParser) -> None:
    """The options of `peers`."""
    verb.add_argument("--artifact", metavar="SPEC", help=f"{shared.WHAT}; default: the work tree")
    verb.add_argument("--peers", default=",".join(catalogue.PEERS), help="names, with commas; default: all")
    verb.add_argument("--contexts", type=shared.numbers, default=CONTEXTS, metavar="N,N")
    verb.add_argument("--page", type=shared.numbers, default=PAGES, metavar="N,N", help="default: 848,16")
    verb.add_argument("--rows", type=int, default=5)
    verb.add_argument("--heads", type=int, default=6)
    verb.add_argument("--head-dim", type=int, default=256)
    verb.add_argument("--graphs", type=int, default=4, help="captures of each; default 4")
    verb.add_argument("--replays", type=int, default=15, help="timed replays of each capture; default 15")
    verb.add_argument("--json", type=Path, metavar="PATH", help="write the record there too")


def run(options: argparse.Namespace) -> int:
    """Measure, print the table, keep the record. It compares nothing with a base, so it rejects nothing."""
    arch = arch_of_gpu() if torch.cuda.is_available() else None
    if arch is None:
        return ending.end(
            Verdict(word="unknown", code="no-gpu", text="peers are timed on a GPU, and there is none"),
            options.json,
        )
    try:
        chosen = subjects.candidate(options.artifact, backend="cuda", arch=arch)
    except ArtifactsError as error:
        return ending.end(Verdict(word="unknown", code=error.code, text=error.text), options.json)
    started, tick = datetime.now(UTC), time.perf_counter()
    contenders, absent = _contenders(chosen, options)
    results = list(_results(contenders, options))
    print(table.text(results), *table.legend(absent), sep="\n")
    reason = conclude(results)
    made = record.make(
        kind="peers",
        artifact=chosen.subject,
        inputs="",
        selection={"rows": options.rows, "pages": list(options.page), "l2": "cold"},
        outcome="pass" if reason.code == "measured" else "unknown",
        reasons=(reason,),
        results={"absent": absent, "shapes": [_json(shape, timed) for shape, timed in results]},
        started_at=started,
        duration_s=time.perf_counter() - tick,
    )
    print(f"record: {store.append(made)}")
    ending.write(options.json, record.as_json(made))
    word = "admitted" if reason.code == "measured" else "unknown"
    return ending.end(Verdict(word=word, code=reason.code, text=reason.text), options.json)


def found(names: Iterable[str]) -> tuple[dict[str, Callable[..., Any]], dict[str, str]]:
    """The peers that are here, and why each of the others isn't."""
    here, absent = {}, {}
    for name in names:
        try:
            here[name] = catalogue.find(name)
        except (LookupError, ImportError) as error:
            absent[name] = str(error)
    return here, absent


def conclude(results: Sequence[Result]) -> Reason:
    """The kernel itself must have been timed; a peer that fails is said in its line."""
    missing = [str(shape.context) for shape, timed in results if timed[0].samples is None]
    if missing:
        text = f"the kernel could not be timed at {', '.join(missing)}: {results[0][1][0].why}"
        return Reason(code="kernel-failed", text=text)
    return Reason(code="measured", text=f"{len(results)} shapes; no comparison with a base")


def _contenders(
    chosen: Contender, options: argparse.Namespace
) -> tuple[dict[str, Callable[..., Any]], dict[str, str]]:
    here, absent = found(options.peers.split(","))
    return {table.KERNEL: _with_workspace(chosen, options)} | here, absent


def _with_workspace(chosen: Contender, options: argparse.Namespace) -> Callable[..., Any]:
    if chosen.extension is None:
        return chosen.attend
    device = torch.device("cuda", torch.cuda.current_device())
    space = chosen.extension.workspace(OP, heads=options.heads, head_dim=options.head_dim, device=device)
    return functools.partial(chosen.attend, workspace=space)


def _results(contenders: dict[str, Callable[..., Any]], options: argparse.Namespace) -> Iterable[Result]:
    fixed = {"rows": options.rows, "heads": options.heads, "head_dim": options.head_dim}
    for page in options.page:
        for context in options.contexts:
            shape = Shape(context=context, page=page, **fixed)
            yield (
                shape,
                measure.shape_of(shape, contenders, graphs=options.graphs, replays=options.replays),
            )


def _json(shape: Shape, timed: list[Timed]) -> dict[str, Any]:
    return {**asdict(shape), "timed": [asdict(one) for one in timed]}
