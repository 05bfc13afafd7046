"""`python -m benchmarks bisect`: the first commit that is slower than the good one."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from artifacts import git, places
from artifacts.errors import ArtifactsError
from benchmarks.abba.options import seconds
from benchmarks.bisect import search, step
from benchmarks.bisect.search import Found
from benchmarks.bisect.settings import ABBA, Settings
from benchmarks.bisect.step import Step
from evidence import ending
from evidence.ending import Verdict

SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Question:
    """`good` is not slower, `bad` is, at this many tokens; `error_rate` is of all steps together."""

    root: Path
    good: str
    bad: str
    options: tuple[str, ...]
    error_rate: float
    measure: tuple[str, ...] = ABBA


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The verdict, the suspects that are left, and every step."""

    verdict: Verdict
    suspects: tuple[str, ...] = ()
    steps: tuple[dict[str, Any], ...] = ()
    log: str = ""


def add_options(verb: argparse.ArgumentParser) -> None:
    """The options of `bisect`."""
    verb.add_argument("--good", required=True, metavar="REV", help="a commit that is fast")
    verb.add_argument("--bad", default="HEAD", metavar="REV", help="a later one that is slow; default HEAD")
    verb.add_argument("--context", type=int, metavar="N", help="tokens; default: 65536, on the host 64")
    verb.add_argument("--backend", choices=("cuda", "host"), help="default: cuda where there is a GPU")
    verb.add_argument(
        "--budget", type=seconds, default=20.0, metavar="TIME", help="of each step; default 20s"
    )
    verb.add_argument("--alpha", type=float, default=0.05, help="error rate of all steps; default 0.05")
    verb.add_argument("--json", type=Path, metavar="PATH", help="write the answer there")


def run(options: argparse.Namespace) -> int:
    """Search, print each step and what is left, end with the verdict's line."""
    try:
        answer = answer_to(_question(options))
    except ArtifactsError as error:
        answer = Answer(verdict=Verdict(word="unknown", code=error.code, text=error.text))
    ending.write(options.json, asdict(answer))
    for line in answer.log.splitlines():
        print(line)
    return ending.end(answer.verdict, options.json)


def _question(options: argparse.Namespace) -> Question:
    import torch  # only to know whether there is a GPU

    backend = options.backend or ("cuda" if torch.cuda.is_available() else "host")
    context = options.context or (65536 if backend == "cuda" else 64)
    words = ("--backend", backend, "--contexts", str(context), "--budget", f"{options.budget}s")
    return Question(
        root=places.root(), good=options.good, bad=options.bad, options=words, error_rate=options.alpha
    )


def answer_to(question: Question) -> Answer:
    """Compare the two ends, then bisect between them. ArtifactsError when that can't be done."""
    good, bad = (_commit(question.root, name) for name in (question.good, question.bad))
    with search.clone(question.root) as repository:
        count = search.distance(repository, good, bad)
        folder = repository.parent
        settings = Settings(
            root=str(question.root),
            clone=str(repository),
            good=good,
            options=question.options,
            alpha=question.error_rate / comparisons(count),
            journal=str(folder / "steps.jsonl"),
            measure=question.measure,
        )
        ends = step.measure(settings, bad)
        if ends.status == step.BAD:
            # Half of what the ends differ by divides them best, if they do differ by so much for sure.
            settings = replace(settings, threshold=(_known(ends.ratio) - 1) / 2)
            ends = step.measure(settings, bad)
        if ends.status != step.BAD:
            return Answer(verdict=_no_slowdown(ends), steps=_steps(settings))
        settings.write(folder / "settings.json")
        found = search.bisect(repository, good, bad, folder / "settings.json")
        return _answer(found, settings)


def comparisons(suspects: int) -> int:
    """How many comparisons a search takes at most when none is skipped, the two of the ends included."""
    return 2 + math.ceil(math.log2(max(2, suspects)))


def _commit(root: Path, name: str) -> str:
    found = git.commit(root, name)
    if found is None:
        raise ArtifactsError("bad-revision", f"{name}: no such revision here")
    return found


def _no_slowdown(ends: Step) -> Verdict:
    """Without a slowdown between the ends there is nothing to find."""
    if ends.status == step.GOOD:
        return Verdict(word="admitted", code="no-slower", text=f"the bad end isn't slower: {ends.line()}")
    if ends.ratio is not None:
        text = f"the ends can't be told apart, raise --budget: {ends.line()}"
        return Verdict(word="undecided", code="time-undecided", text=text)
    return Verdict(word="unknown", code="ends-unknown", text=ends.line())


def _known(ratio: float | None) -> float:
    assert ratio is not None, "a step that is judged has a ratio"
    return ratio


def _steps(settings: Settings) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in Path(settings.journal).read_text().splitlines())


def _answer(found: Found, settings: Settings) -> Answer:
    steps = _steps(settings)
    verdict = _conclude(found, [Step(**one) for one in steps])
    return Answer(verdict=verdict, suspects=found.suspects, steps=steps, log=found.log)


def _conclude(found: Found, steps: list[Step]) -> Verdict:
    """One suspect is the answer; several are, when only skipped ones are left; else the search broke off."""
    if len(found.suspects) == 1:
        (name,) = found.suspects
        line = next(one.line() for one in reversed(steps) if one.commit == name)
        return Verdict(word="rejected", code="located", text=f"the first slower commit is {line}")
    shown = ", ".join(name[:12] for name in found.suspects[:SHOWN])
    more = f" and {len(found.suspects) - SHOWN} more" if len(found.suspects) > SHOWN else ""
    if any(one.status == step.STOP for one in steps):
        text = f"a step failed ({steps[-1].line()}); still suspected: {shown}{more}"
        return Verdict(word="unknown", code="bisect-stopped", text=text)
    skipped = sum(one.status == step.SKIP for one in steps)
    text = f"{skipped} commits could not be judged; the first slower one is among {shown}{more}"
    return Verdict(word="undecided", code="bisect-ambiguous", text=text)
