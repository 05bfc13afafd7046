"""What `python -m regression fuzz` does, from options to a judgement and a record."""

from __future__ import annotations

import argparse
import hashlib
import secrets
import shlex
import time
from pathlib import Path

from rich.console import Console

from evidence import places
from fixtures.cases import Spec, drawn
from fixtures.errors import FixtureError
from fixtures.integrity import write_atomically
from regression import judge, progress, recording
from regression.contract.rows import Rows
from regression.fuzz import rules
from regression.fuzz.explore import Exploration, Failure, explore, has_hypothesis, repeat
from regression.judge import Judgement, Reason
from regression.recording import Start
from regression.selection import SelectionError
from regression.target import Target

KIND = "fuzz"
# Of one seed; a run by minutes goes through seeds.
EXAMPLES_A_SEED = 200


def run(options: argparse.Namespace, chosen: Target, console: Console) -> Judgement:
    """Check the corpus, or the calls of a file; then draw calls; keep a record, say what came out."""
    start = Start.now()
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    known = _known(options)
    console.print(_headline(options, chosen, known, seed), markup=False, soft_wrap=True)
    rows = Rows.of(chosen)
    exploration = Exploration(
        check=lambda spec: rules.check(spec, rows),
        until_s=float("inf") if options.minutes is None else time.monotonic() + 60 * options.minutes,
        tick=progress.ticker("fuzz", console),
    )
    _go(options, exploration, known, seed)
    saved = _save(options, exploration.smallest(), chosen, console)
    judgement = _decide(exploration, saved, seed, scope=chosen.label)
    _keep(options, chosen, exploration, judgement, start, seed, console)
    return judge.claimed(judgement, () if chosen.side is None else chosen.side.dirty)


def _known(options: argparse.Namespace) -> tuple[Spec, ...]:
    try:
        return drawn.corpus() if options.example is None else drawn.read(options.example)
    except FixtureError as error:
        if options.example is None:
            raise
        raise SelectionError(str(error)) from error


def _headline(options: argparse.Namespace, chosen: Target, known: tuple[Spec, ...], seed: int) -> str:
    if options.example is not None:
        return f"{chosen.label}: {len(known)} calls of {options.example}"
    amount = f"{options.examples} calls" if options.minutes is None else f"{options.minutes:g} minutes"
    small = "" if has_hypothesis() else "; without hypothesis a failing call stays as it is drawn"
    return f"{chosen.label}: {len(known)} kept calls, then {amount} from seed {seed}{small}"


def _go(options: argparse.Namespace, exploration: Exploration, known: tuple[Spec, ...], seed: int) -> None:
    repeat(exploration, known)
    if exploration.failures or options.example is not None:
        return
    if options.minutes is None:
        explore(exploration, seed=seed, examples=options.examples)
        return
    while not exploration.failures and time.monotonic() < exploration.until_s:
        explore(exploration, seed=seed, examples=EXAMPLES_A_SEED)
        seed += 1


def _save(
    options: argparse.Namespace, failure: Failure | None, chosen: Target, console: Console
) -> Path | None:
    """Write the failing call where it can be repeated from, and print how."""
    if failure is None:
        return None
    content = drawn.text([failure.spec])
    path: Path = options.example or (
        places.home() / "fuzz" / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.json"
    )
    if options.example is None:
        write_atomically(path, content.encode())
    console.print(f"call: {content.splitlines()[1]}", markup=False, soft_wrap=True)
    for violation in failure.violations:
        console.print(f"{violation.gate}: {violation.text}", markup=False, soft_wrap=True)
    console.print(f"again: {_again(options, path, chosen)}", markup=False, soft_wrap=True)
    return path


def _again(options: argparse.Namespace, path: Path, chosen: Target) -> str:
    words = ["python", "-m", "regression", "fuzz", "--example", str(path)]
    words += ["--backend", chosen.subject.backend, "--arch", chosen.arch]
    for name, value in (
        ("--artifact", options.artifact),
        ("--library", options.library),
        ("--callable", options.function),
    ):
        words += [] if value is None else [name, str(value)]
    return shlex.join(words)


def _decide(exploration: Exploration, saved: Path | None, seed: int, *, scope: str) -> Judgement:
    failure = exploration.smallest()
    if failure is None:
        if not exploration.ran:
            return judge.unknown("nothing-checked", "no call was drawn: give more --examples or --minutes")
        ran = f"{exploration.ran} calls, {exploration.refused} of them refused as they must be"
        return Judgement(word="admitted", reasons=(Reason(code="fuzz-kept", text=f"{scope}: {ran}"),))
    first = failure.violations[0]
    text = f"{first.gate}: {first.text}; call {exploration.ran} of seed {seed}, kept in {saved}"
    return Judgement(word="rejected", reasons=(Reason(code="fuzz-broken", text=text),))


def _keep(
    options: argparse.Namespace,
    chosen: Target,
    exploration: Exploration,
    judgement: Judgement,
    start: Start,
    seed: int,
    console: Console,
) -> None:
    failure = exploration.smallest()
    results = {
        "ran": exploration.ran,
        "refused": exploration.refused,
        "failure": None if failure is None else drawn.as_json(failure.spec),
        "violations": [] if failure is None else [vars(violation) for violation in failure.violations],
    }
    selection = {"seed": seed, "calls": exploration.ran, "partials": chosen.partials is not None}
    made = recording.make(KIND, chosen, judgement, results=results, selection=selection, start=start)
    console.print(f"record: {recording.keep(made, options.json)}", markup=False, soft_wrap=True)
