"""`python -m benchmarks calibrate`: how often the engine errs on this machine."""

from __future__ import annotations

import argparse
import functools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from artifacts import ArtifactsError
from benchmarks.abba import citation, command, subjects
from benchmarks.abba.command import Sides
from benchmarks.abba.decision import Rule
from benchmarks.abba.guards import AlarmError
from benchmarks.abba.recording import Took
from benchmarks.abba.subjects import Contender
from benchmarks.calibrate import judging, planted, summary, table, trials
from benchmarks.calibrate import study as studies
from benchmarks.calibrate.judging import Limits
from benchmarks.calibrate.rates import StatisticsError
from benchmarks.calibrate.study import Study, StudyError
from benchmarks.calibrate.summary import Summary
from benchmarks.calibrate.trials import AA, Case, Trial
from benchmarks.latency.problem import Shape
from evidence import ending, instrument, machine, record, store
from evidence.ending import OUTCOMES, Verdict
from evidence.record import Reason, Record

DEFAULT_BUDGETS_S = {"host": 5.0, "cuda": 2.5}  # as abba's: 10 s for four contexts
DEFAULT_PLANTS = {"host": (0.1,), "cuda": ()}


def run(options: argparse.Namespace) -> int:
    """Run the trials, merge them with the study's earlier ones, keep the record, end with the verdict."""
    try:
        return _report(options) if options.report is not None else _run(options)
    except (ArtifactsError, AlarmError) as error:
        return ending.end(Verdict(word="unknown", code=error.code, text=error.text), options.json)
    except (StudyError, StatisticsError) as error:
        return ending.end(Verdict(word="unknown", code="no-study", text=str(error)), options.json)


def _run(options: argparse.Namespace) -> int:
    backend, arch = command.target(options)
    chosen = subjects.candidate(options.artifact, backend=backend, arch=arch)
    options.budget = options.budget or DEFAULT_BUDGETS_S[backend]
    shapes = command.family(options, backend)
    if len({shape.context for shape in shapes}) != len(shapes):
        raise ArtifactsError("usage", "one number of rows and one page size per study: start one for each")
    rule, source = command.rule_of(options, len(shapes)), random.Random(options.seed)
    cases = list(_cases(options, chosen, shapes, source))
    study = _study(options, chosen, rule, shapes)
    earlier = study.earlier(store.load().records)
    turns = study.turns(cases, earlier, options.trials)
    if len(turns) < options.trials * len(cases):
        print(f"{len(turns)} of {options.trials * len(cases)} trials: {study.declared} of each were declared")
    started, tick = datetime.now(UTC), time.perf_counter()
    fresh = measure(turns, rule, options, source)
    took = Took(started=started, seconds=time.perf_counter() - tick)
    return _finish(study, chosen, earlier, fresh, took, options)


def measure(turns: list[Case], rule: Rule, options: argparse.Namespace, source: random.Random) -> list[Trial]:
    """A trial of each turn, on a bench of its own."""
    one = functools.partial(
        trials.prepare, rule=rule, protocol=options.protocol, budget_s=options.budget, source=source
    )
    console = Console(stderr=True)
    shown = track(
        turns, description="trials", console=console, transient=True, disable=not console.is_terminal
    )
    return [one(case) for case in shown]


def _cases(
    options: argparse.Namespace, chosen: Contender, shapes: list[Shape], source: random.Random
) -> Iterator[Case]:
    for kind, null, base, other in _kinds(options, chosen):
        judged = kind not in {_slowed(spec) for spec in options.shown}
        backend, arch = chosen.subject.backend, chosen.subject.arch
        sides = Sides(base=base, candidate=other, backend=backend, arch=arch)
        for shape in shapes:
            bench: Callable[[], Any] = functools.partial(
                command.bench, sides, shape, source, hot=options.l2 == "hot"
            )
            yield Case(kind=kind, null=null, judged=judged, context=shape.context, bench=bench)


def _kinds(
    options: argparse.Namespace, chosen: Contender
) -> Iterator[tuple[str, bool, Contender, Contender]]:
    """(kind, whether both sides are one code, base, candidate) of A/A, two builds and planted slowdowns."""
    named = {"backend": chosen.subject.backend, "arch": chosen.subject.arch}
    # Loaded once more, as a comparison of two artifacts would be.
    yield AA, True, chosen, subjects.candidate(options.artifact, **named)
    if options.second is not None:
        second = subjects.candidate(options.second, **named)
        if not subjects.identical(chosen, second):
            raise ArtifactsError("usage", f"--second {options.second} isn't a build of the same code")
        yield "two builds", True, chosen, second
    for fraction in options.plant or DEFAULT_PLANTS[chosen.subject.backend]:
        yield f"planted {fraction:.2%}", False, chosen, planted.slowed(chosen, fraction)
    unslowed = chosen if options.unslowed is None else subjects.candidate(options.unslowed, **named)
    for spec in (*options.slowed, *options.shown):
        yield _slowed(spec), False, unslowed, subjects.candidate(spec, **named)


def _slowed(spec: str) -> str:
    return f"slowed {Path(spec).name}"


def _study(options: argparse.Namespace, chosen: Contender, rule: Rule, shapes: list[Shape]) -> Study:
    """The study that this run belongs to; without a name it is one of its own."""
    subject = chosen.subject
    terms = {
        "machine": citation.machine_key(machine.describe(), backend=subject.backend),
        "backend": subject.backend,
        "arch": subject.arch,
        "code": subject.code_digest or subject.sha256,
        "instrument": instrument.of(citation.KIND).digest,
        "protocol": options.protocol,
        "budget_s": options.budget,
        "l2": options.l2,
        "rule": asdict(rule),
        "limits": asdict(_limits(options)),
        "shapes": [asdict(shape) for shape in shapes],
    }
    # Its limits are terms too: whoever has seen the first trials can't move them.
    name = options.study or f"single-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    return Study(name=name, declared=options.declared or options.trials, terms=terms)


def _limits(options: argparse.Namespace) -> Limits:
    return Limits(
        most_false_alarms=options.most_false_alarms,
        least_power=options.least_power,
        most_median_s=options.most_median,
    )


def _report(options: argparse.Namespace) -> int:
    """Print each study of that name, newest last, and end with the newest's verdict."""
    name = options.report
    groups = studies.by_terms(store.load().records, name)
    if not groups:
        raise StudyError(f"no record is of a study {name}")
    if len(groups) > 1:
        print(f"{len(groups)} studies are named {name}; their terms differ, the verdict is the last one's")
    verdicts = [_shown(protocols, titled=len(groups) > 1) for protocols in groups]
    return ending.end(verdicts[-1], options.json)


def _shown(protocols: dict[str, list[Record]], *, titled: bool) -> Verdict:
    """Print a study's protocols side by side; the verdict is the engine's, when it is there."""
    if titled:
        print(f"\n{studies.title(next(iter(protocols.values())))}")
    found = {protocol: _reopened(records) for protocol, records in sorted(protocols.items())}
    print(table.text({protocol: summaries for protocol, (summaries, _) in found.items()}))
    for protocol, (_, verdict) in found.items():
        print(f"{protocol}: {verdict.word} ({verdict.code}: {verdict.text})")
    return found[trials.ENGINE if trials.ENGINE in found else next(iter(found))][1]


def _reopened(records: list[Record]) -> tuple[list[Summary], Verdict]:
    study = studies.reopened(records)
    pooled = studies.trials_of(records)
    summaries = summary.summarise(pooled)
    limits = Limits(**study.terms.get("limits", {}))
    return summaries, judging.judge(summaries, limits, missing=study.missing(pooled))


def _finish(
    study: Study,
    chosen: Contender,
    earlier: list[Trial],
    fresh: list[Trial],
    took: Took,
    options: argparse.Namespace,
) -> int:
    pooled = [*earlier, *fresh]
    summaries = summary.summarise(pooled)
    verdict = judging.judge(summaries, _limits(options), missing=study.missing(pooled))
    made = _record(study, chosen, fresh, summaries, verdict, took)
    print(f"record: {store.append(made)}")
    print(f"study {study.name}: {len(fresh)} trials now, {len(earlier)} before")
    print(table.text({options.protocol: summaries, **_others(study)}))
    ending.write(options.json, record.as_json(made))
    return ending.end(verdict, options.json)


def _others(study: Study) -> dict[str, list[Summary]]:
    """The same study's other protocols, so far."""
    protocols = studies.named(store.load().records, study.name)
    return {
        protocol: summary.summarise(studies.trials_of(records))
        for protocol, records in sorted(protocols.items())
        if protocol != study.terms["protocol"]
    }


def _record(
    study: Study,
    chosen: Contender,
    fresh: list[Trial],
    summaries: list[Summary],
    verdict: Verdict,
    took: Took,
) -> Record:
    return record.make(
        kind=citation.KIND,
        artifact=chosen.subject,
        inputs="",
        selection={"study": study.name, "declared": study.declared, "terms": dict(study.terms)},
        outcome=OUTCOMES[verdict.word],
        reasons=(Reason(code=verdict.code, text=verdict.text),),
        results={
            "trials": [trials.to_json(trial) for trial in fresh],
            "summaries": [summary.to_json(one) for one in summaries],
        },
        started_at=took.started,
        duration_s=took.seconds,
    )
