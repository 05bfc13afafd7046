"""`python -m benchmarks abba`: is the candidate slower than the base?"""

from __future__ import annotations

import argparse
import functools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import torch

from artifacts import ArtifactsError
from benchmarks.abba import citation, engine, outcome, plan, plot, recording, subjects, table
from benchmarks.abba import options as shared
from benchmarks.abba.decision import Rule
from benchmarks.abba.engine import Comparison
from benchmarks.abba.guards import AlarmError
from benchmarks.abba.outcome import Result
from benchmarks.abba.recording import Took
from benchmarks.abba.sampling import BASE, CANDIDATE, Bench
from benchmarks.abba.subjects import Contender
from benchmarks.latency.problem import Shape
from evidence import ending, machine, record, store
from evidence.ending import Verdict
from grouped_attention.load import DEFAULT_HOST_ARCH, arch_of_gpu

CONTEXTS = {"cuda": (8192, 65536, 131072, 262144), "host": (64,)}
HOST_THREADS = 1  # neighbours disturb one thread less than many


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Both contenders, and the backend and architecture that they run on."""

    base: Contender
    candidate: Contender
    backend: str
    arch: str


def run(options: argparse.Namespace) -> int:
    """Find both sides, measure the family, print, keep the record, end with the verdict's line."""
    try:
        sides = resolve(options)
    except ArtifactsError as error:
        return ending.end(Verdict(word="unknown", code=error.code, text=error.text), options.json)
    if subjects.identical(sides.base, sides.candidate) and not options.aa:
        if options.plot is not None:
            print("no plot: both sides are the same code, so there is nothing to plot; --aa times it")
        return ending.end(_identical(sides), options.json)
    shapes = family(options, sides.backend)
    started, tick = datetime.now(UTC), time.perf_counter()
    rule = rule_of(options, len(shapes))
    results = measure(sides, shapes, rule, options)
    verdict = outcome.conclude(results, is_host=sides.backend == "host")
    took = Took(started=started, seconds=time.perf_counter() - tick)
    _keep(sides, results, verdict, rule, took, options)
    return ending.end(_clean(verdict, sides), options.json)


def resolve(options: argparse.Namespace) -> Sides:
    """Both sides, loaded; ArtifactsError says what can't be had."""
    backend, arch = target(options)
    chosen = {"backend": backend, "arch": arch}
    candidate = subjects.candidate(options.candidate, **chosen)
    base = subjects.base(options.base, candidate, **chosen)
    return Sides(base=base, candidate=candidate, **chosen)


def measure(sides: Sides, shapes: Sequence[Shape], rule: Rule, options: argparse.Namespace) -> list[Result]:
    """Each shape in turn; what one leaves of the budget is the next ones'."""
    source, results = random.Random(options.seed), []
    end = time.perf_counter() + options.budget
    for at, shape in enumerate(shapes):
        rest = functools.partial(_share, end, len(shapes) - at)
        results.append(Result(shape=shape, comparison=_compared(sides, shape, rule, options, source, rest)))
    return results


def _share(end_s: float, comparisons: int) -> float:
    return max(0.0, end_s - time.perf_counter()) / comparisons


def _compared(
    sides: Sides,
    shape: Shape,
    rule: Rule,
    options: argparse.Namespace,
    source: random.Random,
    rest_s: Callable[[], float],
) -> Comparison:
    try:
        made = bench(sides, shape, source, hot=options.l2 == "hot")
    except AlarmError as alarm:
        return engine.failed(alarm)
    # Making the inputs takes from the whole budget, not from this comparison's share.
    return engine.compare(made, rule, budget_s=rest_s(), source=source)


def bench(sides: Sides, shape: Shape, source: random.Random, *, hot: bool) -> Bench:
    """The machine with both sides on it; chance decides whose memory is allocated first."""
    pairs = [(BASE, sides.base), (CANDIDATE, sides.candidate)]
    source.shuffle(pairs)
    named = dict(pairs)
    if sides.backend == "host":
        from benchmarks.abba.host import HostBench

        torch.set_num_threads(HOST_THREADS)
        return HostBench(named, shape, hot=hot)
    from benchmarks.abba.cuda import CudaBench

    return CudaBench(named, shape, hot=hot)


def family(options: argparse.Namespace, backend: str) -> list[Shape]:
    """All contexts, rows and pages."""
    contexts = options.contexts or CONTEXTS[backend]
    fixed = {"heads": options.heads, "head_dim": options.head_dim}
    return [
        Shape(context=c, rows=r, page=p, **fixed)
        for p in options.page
        for r in options.rows
        for c in contexts
    ]


def rule_of(options: argparse.Namespace, comparisons: int) -> Rule:
    """The options' rule."""
    return Rule(
        comparisons=comparisons,
        alpha=options.alpha,
        margin=options.margin,
        reject_above=options.reject_above,
        resolution=options.resolution,
    )


def target(options: argparse.Namespace) -> tuple[str, str]:
    """Backend and architecture: what the options say, else what is here."""
    backend = _backend(options)
    return backend, options.arch or _arch(backend)


def _backend(options: argparse.Namespace) -> str:
    if options.backend == "cuda" and not torch.cuda.is_available():
        raise ArtifactsError("no-gpu", "torch sees no GPU here: use --backend host, or a GPU machine")
    return str(options.backend or ("cuda" if torch.cuda.is_available() else "host"))


def _arch(backend: str) -> str:
    if backend == "host":
        return DEFAULT_HOST_ARCH
    arch = arch_of_gpu()
    if arch is None:
        raise ArtifactsError("no-gpu", "this kernel doesn't run on this GPU")
    return arch


def _identical(sides: Sides) -> Verdict:
    digest = sides.candidate.subject.code_digest or sides.candidate.subject.sha256
    text = f"both sides are the code {digest[:12]}, so nothing was timed; --aa times it against itself"
    return _clean(Verdict(word="admitted", code="identical", text=text), sides)


def _clean(verdict: Verdict, sides: Sides) -> Verdict:
    """What is measured of a dirty work tree is never admitted."""
    if verdict.word != "admitted" or not sides.candidate.subject.dirty:
        return verdict
    return Verdict(
        word="undecided", code="dirty-tree", text=f"{verdict.text}; but files differ from the commit"
    )


def _notes(sides: Sides, options: argparse.Namespace) -> list[str]:
    notes = [f"base: {sides.base.label}", f"candidate: {sides.candidate.label}"]
    if subjects.identical(sides.base, sides.candidate):
        notes.append("identical code on both sides: an A/A trial, which tests the instrument")
    if sides.backend == "host":
        notes.append("CPU clock: this tests the instrument, and says nothing of the kernel")
    known = citation.line(store.load().records, machine.describe(), backend=sides.backend)
    return [*notes, f"L2 {options.l2}", known]


def _keep(
    sides: Sides,
    results: Sequence[Result],
    verdict: Verdict,
    rule: Rule,
    took: Took,
    options: argparse.Namespace,
) -> None:
    """Print the results, append the record, write the copies that were asked for."""
    notes = [*_notes(sides, options), *sorted({r.comparison.note for r in results if r.comparison.note})]
    _show(results, notes)
    fixed: dict[str, Any] = {
        "base": sides.base,
        "candidate": sides.candidate,
        "selection": _selection(options, results, sides.backend),
    }
    made = recording.make(results, verdict, rule, notes=notes, took=took, **fixed)
    print(f"record: {store.append(made)}")
    ending.write(options.json, record.as_json(made))
    if options.plot is not None:
        _draw(results, options, title=f"{sides.backend} {sides.arch}, L2 {options.l2}")


def _show(results: Sequence[Result], notes: Sequence[str]) -> None:
    print(*notes, table.text(results), *(table.noise(result) for result in results), sep="\n")
    for result in results:
        for reason, count in table.voids(result.comparison.rounds).items():
            print(f"{result.name}: {count} void: {reason}")


def _draw(results: Sequence[Result], options: argparse.Namespace, *, title: str) -> None:
    try:
        plot.draw(results, options.plot, margin=options.margin, title=title)
    except plot.PlotError as error:
        print(f"no plot: {error}")


def _selection(options: argparse.Namespace, results: Sequence[Result], backend: str) -> dict[str, Any]:
    shapes = [result.shape for result in results]
    return {
        "plan": plan.of(options, CONTEXTS[backend]),
        "contexts": sorted({shape.context for shape in shapes}),
        "rows": sorted({shape.rows for shape in shapes}),
        "pages": sorted({shape.page for shape in shapes}),
        "l2": options.l2,
        "margin": options.margin,
        "reject_above": options.reject_above,
        "seed": options.seed,
    }


def add_options(verb: argparse.ArgumentParser) -> None:
    """The options of `abba`."""
    shared.sides(verb)
    shared.shapes(verb)
    shared.rule(verb, budget_s=10.0, budget_text="of all comparisons together; default 10s")
    shared.target(verb)
