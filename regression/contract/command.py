"""What `python -m regression contract` does, from options to a judgement and a record."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from rich.console import Console

from fixtures import cases
from fixtures.errors import FixtureError
from regression import call, judge, progress, recording
from regression.contract import gates, rows
from regression.contract.gates import Violation
from regression.contract.results import CaseResult, decide, failures
from regression.contract.rows import Rows
from regression.judge import Judgement
from regression.recording import Start
from regression.selection import SelectionError
from regression.target import Target

KIND = "contract"
NO_MEMORY = (MemoryError, torch.OutOfMemoryError)
LARGE = ("far-", "pool-")


def run(options: argparse.Namespace, chosen: Target, console: Console) -> Judgement:
    """Check the chosen cases, keep a record, say what came out."""
    names = _select(options.cases)
    start = Start.now()
    console.print(f"{chosen.label}: {len(names)} cases", markup=False, soft_wrap=True)
    results = list(progress.bar(check(names, chosen), total=len(names), title="contract", console=console))
    judgement = decide(results, scope=chosen.label)
    if judgement.word == "rejected":
        console.print(failures(results))
    _keep(options, chosen, results, judgement, start, console)
    return judge.claimed(judgement, () if chosen.side is None else chosen.side.dirty)


def check(names: Sequence[str], target: Target) -> Iterator[CaseResult]:
    """The result of each case, in order."""
    table = Rows.of(target)
    for name in names:
        tick = time.perf_counter()
        result = _check(name, target, table)
        yield replace(result, seconds=time.perf_counter() - tick)
        if call.context_is_lost(target):
            yield _failed(name, "the GPU's context is lost, and no later case could be run")
            return


def _check(name: str, target: Target, table: Rows) -> CaseResult:
    try:
        with nullcontext() if name.startswith(cases.LONG) else call.one_thread():
            return _held(name, target, table)
    except NO_MEMORY:
        # Pages gigabytes apart don't fit everywhere; nothing else may be left out for want of memory.
        if name.startswith(LARGE):
            return CaseResult(name=name, uncovered=("too little memory",), ran=False)
        raise
    except RuntimeError as error:
        if not call.context_is_lost(target):
            raise
        return _failed(name, str(error))


def _held(name: str, target: Target, table: Rows) -> CaseResult:
    spec = cases.rows().get(name)
    if spec is None:
        case = cases.build(name, target.device)
        broken, gaps = gates.check(case, target), gates.uncovered(case, target)
        return CaseResult(name=name, catches=case.catches, violations=broken, uncovered=gaps)
    gaps = rows.uncovered(spec, target)
    if gaps:
        return CaseResult(name=name, catches=spec.catches, uncovered=gaps, ran=False)
    return CaseResult(name=name, catches=spec.catches, violations=table.check(spec))


def _failed(name: str, text: str) -> CaseResult:
    return CaseResult(name=name, violations=(Violation(gate="kernel-failed", text=f"{name}: {text}"),))


def _select(text: str) -> tuple[str, ...]:
    try:
        return cases.select(text)
    except FixtureError as error:
        raise SelectionError(str(error)) from error


def _keep(
    options: argparse.Namespace,
    chosen: Target,
    results: Sequence[CaseResult],
    judgement: Judgement,
    start: Start,
    console: Console,
) -> None:
    selection: dict[str, Any] = {"cases": options.cases, "partials": chosen.partials is not None}
    broken = [{"case": r.name, **vars(v)} for r in results for v in r.violations]
    results_json = {
        "first_violation": broken[0] if broken else None,
        "cases": [result.as_json() for result in results],
    }
    made = recording.make(KIND, chosen, judgement, results=results_json, selection=selection, start=start)
    console.print(f"record: {recording.keep(made, options.json)}", markup=False, soft_wrap=True)
