"""What `python -m regression` does, from options to a judgement."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from evidence import ending
from fixtures import integrity
from fixtures.errors import FixtureError
from fixtures.groups import Group
from regression import accept, judge, locate, locate_report, progress, recording, stored, table, target
from regression.call import KernelError
from regression.contract import command as contract_command
from regression.fuzz import command as fuzz_command
from regression.judge import Judgement
from regression.recording import Start
from regression.replay import Play, replay
from regression.results import GroupResult
from regression.selection import DEFAULT_GROUPS, SelectionError, select
from regression.target import Target, TargetError

PLAIN_COLUMNS = 100
Mode = Callable[[argparse.Namespace, Target, Console], Judgement]
VERBS: dict[str, Mode] = {"contract": contract_command.run, "fuzz": fuzz_command.run}


def run(options: argparse.Namespace) -> Judgement:
    """Check the fixtures, get the target, then run the verb's way of using it."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PLAIN_COLUMNS)
    try:
        integrity.verify()
        return _mode(options)(options, resolve(options), console)
    except SelectionError as failure:
        return judge.usage(str(failure))
    except FixtureError as failure:
        return judge.error("fixture-damaged", str(failure))
    except TargetError as failure:
        if failure.code == "usage":
            return judge.usage(str(failure))
        if failure.code == "bad-setting":  # the caller's environment, not a lack of evidence
            return judge.error(failure.code, str(failure))
        return judge.unknown(failure.code, str(failure))
    except KernelError as failure:
        return judge.failed("kernel-failed", str(failure))


def resolve(options: argparse.Namespace) -> Target:
    """The target that the options name."""
    if options.function is not None:
        backend = options.backend or target.default_backend()
        return target.from_callable(options.function, backend=backend, arch=options.arch)
    path = options.library or options.artifact
    if path is not None:
        return target.from_path(path, backend=options.backend, arch=options.arch)
    return target.built(options.backend or target.default_backend(), options.arch)


def _mode(options: argparse.Namespace) -> Mode:
    if options.verb != "replay":
        return VERBS[options.verb]
    if options.locate is not None:
        return _locate
    return _replay if options.accept is None else _accept


def _replay(options: argparse.Namespace, chosen: Target, console: Console) -> Judgement:
    start, results = Start.now(), []
    try:
        plays = _play_all(_groups(options), chosen, console, check_partials=not options.no_partials)
        results = [play.result for play in plays]
        judgement = judge.judge(results, scope=chosen.label)
    except KernelError as failure:
        judgement = judge.failed("kernel-failed", str(failure))
    _keep(options, chosen, results, judgement, start, console)
    return judge.claimed(judgement, _dirty(chosen))


def _accept(options: argparse.Namespace, chosen: Target, console: Console) -> Judgement:
    complaint = accept.complaint(options, chosen)
    if complaint is not None:
        return judge.usage(complaint)
    start, before = Start.now(), integrity.manifest_hash()
    plays = _play_all(select("all"), chosen, console, check_partials=True)
    judgement = accept.decide(plays) or accept.renew(plays, chosen, options.accept)
    results = recording.of_groups([play.result for play in plays])
    results["accepted"] = {"reason": options.accept, "inputs_before": before}
    selection = {"groups": "all", "partials": True}
    made = recording.make("accept", chosen, judgement, results=results, selection=selection, start=start)
    _say(recording.keep(made, options.json), console)
    return judgement


def _locate(options: argparse.Namespace, chosen: Target, console: Console) -> Judgement:
    finding = locate.find(options.locate, chosen, against=options.against)
    console.print(locate_report.text(finding), markup=False, soft_wrap=True)
    judgement = judge.claimed(locate_report.judgement(finding), _dirty(chosen))
    ending.write(options.json, locate_report.as_json(finding, judgement))
    return judgement


def _dirty(chosen: Target) -> tuple[str, ...]:
    return () if chosen.side is None else chosen.side.dirty


def _groups(options: argparse.Namespace) -> tuple[Group, ...]:
    return select(_selection(options))


def _selection(options: argparse.Namespace) -> str:
    given: str | None = options.groups
    return DEFAULT_GROUPS if given is None else given


def _play_all(
    groups: Sequence[Group], chosen: Target, console: Console, *, check_partials: bool
) -> list[Play]:
    origin = "" if chosen.side is None else f", from {chosen.side.origin}"
    console.print(f"{chosen.label}: {len(groups)} groups{origin}", markup=False, soft_wrap=True)
    plays = replay(groups, chosen, stored.reader(chosen.arch), check_partials=check_partials)
    done = list(progress.bar(plays, total=len(groups), title="replay", console=console))
    report(done, console)
    return done


def report(plays: Sequence[Play], console: Console) -> None:
    """The table, and for each group with other bits the first differing element."""
    results = [play.result for play in plays]
    console.print(table.rich_table(results, title="bits against goldens, values against FP64"))
    for line in table.complaints(results):
        console.print(line, markup=False, soft_wrap=True)


def _keep(
    options: argparse.Namespace,
    chosen: Target,
    results: Sequence[GroupResult],
    judgement: Judgement,
    start: Start,
    console: Console,
) -> None:
    selection: dict[str, Any] = {
        "groups": _selection(options),
        "partials": not options.no_partials and chosen.partials is not None,
    }
    made = recording.make(
        "replay", chosen, judgement, results=recording.of_groups(results), selection=selection, start=start
    )
    _say(recording.keep(made, options.json), console)


def _say(path: Path, console: Console) -> None:
    console.print(f"record: {path}", markup=False, soft_wrap=True)
