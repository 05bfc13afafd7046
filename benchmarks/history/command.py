"""`python -m benchmarks history`: measure commits with the asv suites, and keep the results."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import artifacts
from artifacts import ArtifactsError, Side, Targets, git, places
from artifacts.sides import from_path, to_json
from benchmarks.history import audit, commits, machine_key, protocol, results, runner, verdict
from benchmarks.history.commits import Commit
from benchmarks.history.results import ResultsError, Tally
from benchmarks.history.runner import Desk
from benchmarks.history.verdict import Outcome
from evidence import ending
from evidence.ending import Verdict
from evidence.places import home

SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Task:
    """One commit to measure; `artifact` is a folder that was built elsewhere."""

    commit: Commit
    artifact: Path | None = None


def _count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: 1 or more")
    return int(text)


def add_options(verb: argparse.ArgumentParser) -> None:
    """The options of `history`."""
    which = verb.add_mutually_exclusive_group()
    which.add_argument("--last", type=_count, metavar="N", help="the last N commits that changed kernels/")
    which.add_argument("--rev", action="append", metavar="REV", help="this commit; may be repeated")
    which.add_argument("--artifact", type=Path, metavar="DIR", help="built elsewhere: needs no git here")
    verb.add_argument(
        "--commit", metavar="HASH", help="with --artifact: its commit, if the folder doesn't say"
    )
    verb.add_argument("--results", type=Path, metavar="DIR", help="default: .kernelgate/history/results")
    verb.add_argument("--take", type=Path, metavar="DIR", help="first take over another machine's results")
    verb.add_argument("--bench", metavar="REGEX", help="only these benchmarks")
    verb.add_argument("--again", action="store_true", help="add samples to what is complete already")
    verb.add_argument("--json", type=Path, metavar="PATH", help="write the outcome there")


def run(options: argparse.Namespace) -> int:
    """Measure each commit that isn't complete, name what is missing, end with the verdict's line."""
    folder = results_folder(options.results)
    if not runner.is_installed():
        return _end(Verdict(word="unknown", code="no-asv", text=runner.NO_ASV), [], [], options)
    try:
        taken, differing = audit.take(options.take, folder) if options.take else (0, [])
        outcomes = [_guarded(task, folder, options) for task in _tasks(options)]
        complaints = [*differing, *audit.complaints(places.root(), folder)]
    except (ArtifactsError, ResultsError) as error:
        code = error.code if isinstance(error, ArtifactsError) else "results-unreadable"
        return _end(Verdict(word="unknown", code=code, text=str(error)), [], [], options)
    found = verdict.taken(taken, len(differing)) if _only_takes(options) else verdict.conclude(outcomes)
    return _end(found, outcomes, complaints, options)


def _only_takes(options: argparse.Namespace) -> bool:
    return bool(options.take and not (options.last or options.rev or options.artifact))


def results_folder(given: Path | None) -> Path:
    """Where results lie: one folder, which a runner may save and restore."""
    folder = (given or home() / "history" / "results").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _tasks(options: argparse.Namespace) -> list[Task]:
    root = places.root()
    if _only_takes(options):
        return []
    if options.artifact is not None:
        return [Task(commit=_commit_of(options), artifact=options.artifact)]
    if options.rev:
        return [Task(commit=commits.named(root, name)) for name in options.rev]
    return [Task(commit=commit) for commit in commits.last(root, options.last or 1)]


def _commit_of(options: argparse.Namespace) -> Commit:
    """The commit of an artifact folder: what the folder says, else `--commit`; its date only from git."""
    stated = from_path(options.artifact).revision
    name = options.commit or stated
    if name is None:
        raise ArtifactsError("no-revision", f"{options.artifact} names no commit: pass --commit HASH")
    if stated is not None and not stated.startswith(name):
        raise ArtifactsError("usage", f"{options.artifact} is of {stated}, not of {name}")
    root = places.root()
    if git.is_repository(root) and git.commit(root, name):
        return commits.named(root, name)
    if len(name) != len("f" * 40):
        raise ArtifactsError(
            "usage", f"--commit {name}: give all 40 digits, as no git here can complete them"
        )
    return Commit(name=name)


def _guarded(task: Task, folder: Path, options: argparse.Namespace) -> Outcome:
    """One commit; when its artifacts can't be had, that is its outcome, and the others go on."""
    try:
        return _one(task, folder, options)
    except ArtifactsError as error:
        reason = f"{error.code}: {error.text}"
        print(f"  {reason}", flush=True)
        return Outcome(commit=task.commit.name, tally=Tally(failed=(reason,)))


def _one(task: Task, folder: Path, options: argparse.Namespace) -> Outcome:
    """One commit, unless all its results are there already."""
    machine = machine_key.describe()
    print(f"{task.commit.name[:12]} on {machine['machine']}", flush=True)
    known = _tally(folder, task.commit, machine["machine"], options.bench)
    if known is not None and known.complete and not options.again:
        print(f"  complete already: {len(known.measured)} results; --again adds samples")
        return Outcome(commit=task.commit.name, tally=known, known=True)
    side = _side(task)
    with tempfile.TemporaryDirectory(prefix="kernelgate-history-") as work:
        desk = Desk(root=places.root(), work=Path(work), results=folder)
        return _measured(task, side, desk, machine, options)


def _side(task: Task) -> Side:
    if task.artifact is not None:
        return from_path(task.artifact)
    wanted = Targets(architectures=protocol.ARCHITECTURES)
    return artifacts.candidate(task.commit.name, wanted, progress=lambda text: print(f"  {text}", flush=True))


def _measured(
    task: Task, side: Side, desk: Desk, machine: dict[str, str], options: argparse.Namespace
) -> Outcome:
    built = desk.work / "side.json"
    built.write_text(json.dumps(_absolute(to_json(side))))
    before = {path: path.read_bytes() for path in results.files(desk.results)}
    status = runner.measure(desk, task.commit, built, machine, options.bench)
    log = _keep_log(desk, machine["machine"], task.commit)
    found = _tally(desk.results, task.commit, machine["machine"], options.bench) or Tally()
    for path, content in before.items():
        if (kept := results.keep_superseded(path, content)) is not None:
            print(f"  results of another protocol are kept in {kept}")
    lost = [name for path, content in before.items() for name in results.restore_lost(path, content)]
    outcome = Outcome(
        commit=task.commit.name,
        tally=found,
        status=status,
        notes=tuple(f"{note['suite']}: {note['code']}: {note['text']}" for note in runner.notes(desk)),
        lost=tuple(lost),
        dirty=side.dirty,
    )
    _show(outcome)
    print(f"  log: {log}")
    return outcome


def _keep_log(desk: Desk, machine: str, commit: Commit) -> Path:
    """What asv and the suites printed, beside the results; an earlier run's log stays."""
    path = desk.results / machine / f"{commit.name[:12]}-{time.strftime('%Y%m%dT%H%M%S')}.log"
    path.parent.mkdir(exist_ok=True)
    shutil.copyfile(desk.log, path)
    return path


def _absolute(side: dict[str, Any]) -> dict[str, Any]:
    """The same with whole paths: asv runs each suite in a folder of its own."""
    for one in side["artifacts"]:
        for name in ("directory", "library"):
            one[name] = one[name] and str(Path(one[name]).absolute())
    return side


def _tally(folder: Path, commit: Commit, machine: str, bench: str | None) -> Tally | None:
    """What is there for a commit on a machine, of the benchmarks that asv last found; None before any run."""
    if not (folder / results.INDEX).exists():
        return None
    found = [results.read(path) for path in results.files(folder) if path.parent.name == machine]
    mine = [one for one in found if one.commit == commit.name]
    # A result may lie in the file of another Python: what one of them has is there.
    chosen = {k: v for k, v in results.index(folder).items() if re.search(bench or "", k)}
    tallies = [results.tally(one, chosen) for one in mine]
    return max(tallies, key=lambda one: len(one.measured), default=None)


def _show(outcome: Outcome) -> None:
    tally = outcome.tally
    counts = f"{len(tally.measured)} measured, {len(tally.skipped)} not for this machine"
    print(f"  {counts}, {len(tally.failed)} failed")
    for note in outcome.notes:
        print(f"  {note}")
    for name in tally.failed[:SHOWN]:
        print(f"  failed: {name}")
    for name in outcome.lost:
        print(f"  kept the earlier result of {name}: this run has none")


def _end(
    found: Verdict, outcomes: Sequence[Outcome], complaints: Sequence[str], options: argparse.Namespace
) -> int:
    for complaint in complaints:
        print(complaint)
    ending.write(options.json, _json(found, outcomes, complaints))
    return ending.end(found, options.json)


def _json(found: Verdict, outcomes: Sequence[Outcome], complaints: Sequence[str]) -> dict[str, Any]:
    return {
        "verdict": found.word,
        "reason": {"code": found.code, "text": found.text},
        "commits": [one.as_json() for one in outcomes],
        "complaints": list(complaints),
    }
