"""`python -m benchmarks nightly`: builds, then every step on each GPU, or the host's alone; one verdict."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from artifacts import git, places
from benchmarks.nightly import ending, perform, plan
from benchmarks.nightly.perform import Ended
from benchmarks.nightly.plan import Built, Gpu, Missing, Night, Step
from evidence.ending import EXIT_CODES, say, write
from evidence.places import RUN_VARIABLE, home
from grouped_attention.load import arch_of_gpu

BUILD_TIMEOUT_S = 1800


def add_options(verb: argparse.ArgumentParser) -> None:
    """The options of `nightly`."""
    verb.add_argument("--artifact", type=Path, metavar="DIR", help="the candidate, built elsewhere")
    verb.add_argument(
        "--base", metavar="SPEC", help="revision, artifact folder or library; default: merge base"
    )
    verb.add_argument(
        "--results", type=Path, metavar="DIR", help="of the history, restored before, saved after"
    )
    verb.add_argument("--budget", default="120s", metavar="TIME", help="of abba on each GPU; default 120s")
    verb.add_argument(
        "--faults", type=Path, metavar="DIR", help="planted faults, built elsewhere for the GPU"
    )
    verb.add_argument(
        "--control", type=Path, metavar="CUBIN", help="the memory tools' planted kernels, built elsewhere"
    )
    verb.add_argument(
        "--fuzz",
        type=float,
        default=plan.FUZZ_MINUTES,
        metavar="MINUTES",
        help="of random calls on the host and on each GPU; default: %(default)g",
    )
    verb.add_argument("--only", metavar="WORDS", help="only steps whose names hold one of these, with commas")
    verb.add_argument("--list", action="store_true", help="build, say what would be run, and stop")
    verb.add_argument("--json", type=Path, metavar="PATH", help="write what became of each step there")


def run(options: argparse.Namespace) -> int:
    """Build both sides, run what the plan says, print a line for each step, end with the verdict's line."""
    name = f"nightly-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
    folder = home() / "runs" / name
    folder.mkdir(parents=True)
    done = [_perform(step, folder, name) for step in _builds(options, folder)]
    night = _night(options, folder)
    steps, missing = plan.steps(night)
    steps = [step for step in steps if _is_chosen(step.name, options.only)]
    for one in missing:
        print(f"not run: {one.name}: {one.why}", flush=True)
    if options.list:
        return _listed(steps)
    done.extend(_perform(step, folder, name) for step in steps)
    return _end(options, done, missing, night)


def _builds(options: argparse.Namespace, folder: Path) -> list[Step]:
    """The two sides' listings: nothing else can start without them."""
    source = ("--source", str(options.artifact)) if options.artifact else ()
    carried = ("--out", str(folder / "artifacts"))
    base = ("--base", options.base) if options.base else ()
    commands = {
        "candidate": ("artifacts", "build", *source, *carried, "--json", str(folder / "candidate.json")),
        "base": ("artifacts", "base", *base, "--json", str(folder / "base.json")),
    }
    return [
        Step(name=f"build {side}", arguments=command, timeout_s=BUILD_TIMEOUT_S, verdict=False)
        for side, command in commands.items()
    ]


def _night(options: argparse.Namespace, folder: Path) -> Night:
    root = places.root()
    candidate = _built(folder / "candidate.json")
    return Night(
        candidate=candidate,
        base=_built(folder / "base.json"),
        gpus=gpus(),
        folder=folder,
        revision=git.commit(root, "HEAD") if git.is_repository(root) and not options.artifact else None,
        results=options.results.absolute() if options.results else None,
        budget=options.budget,
        faults=options.faults.absolute() if options.faults else None,
        control=options.control.absolute() if options.control else None,
        fuzz=options.fuzz,
    )


def gpus() -> tuple[Gpu, ...]:
    """Every GPU that the kernel runs on."""
    found = []
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        with torch.cuda.device(index):
            arch = arch_of_gpu()
        if arch is not None:
            found.append(Gpu(index=index, arch=arch))
    return tuple(found)


def _built(listing: Path) -> Built:
    """What was built; nothing, where the build failed: the plan names what is missing then."""
    value = json.loads(listing.read_bytes()) if listing.is_file() else {"artifacts": []}
    found = {
        (one["backend"], one["arch"]): one["directory"] for one in value["artifacts"] if one["directory"]
    }
    return Built(listing=listing, folders=found)


def _is_chosen(name: str, only: str | None) -> bool:
    return only is None or any(word in name for word in only.split(","))


def _listed(steps: Sequence[Step]) -> int:
    for step in steps:
        print(f"{step.name}: python -m {' '.join(step.arguments)}")
    say("verdict: unknown (nothing-measured: only listed)")
    return EXIT_CODES["unknown"]


def _perform(step: Step, folder: Path, run_id: str) -> Ended:
    number = len(list(folder.glob("*.log")))
    log = folder / f"{number:02}-{step.name.replace(' ', '-')}.log"
    ended = perform.run(step, log, {RUN_VARIABLE: run_id})
    print(f"{ended.word:9} {step.name} ({ended.seconds:.0f} s): {ended.last}", flush=True)
    return ended


def _end(options: argparse.Namespace, done: Sequence[Ended], missing: Sequence[Missing], night: Night) -> int:
    scope = [f"gpu{gpu.index} {gpu.arch}" for gpu in night.gpus]
    word, reason = ending.conclude(done, missing, scope, partial=options.only is not None)
    write(options.json, _json(word, reason, done, missing))
    print(f"logs, report and pack: {night.folder}")
    say(f"verdict: {word} ({reason})")
    return EXIT_CODES[word]


def _json(word: str, reason: str, done: Sequence[Ended], missing: Sequence[Missing]) -> dict[str, Any]:
    return {
        "verdict": word,
        "reason": reason,
        "steps": [{**asdict(one), "log": str(one.log)} for one in done],
        "not_run": [asdict(one) for one in missing],
    }
