"""What `python -m regression emulate` does, from options to a judgement and a record per architecture."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from evidence import ending, record, store
from evidence.record import Record
from fixtures import integrity
from fixtures.errors import FixtureError
from grouped_attention.manifest import sha256_file
from regression import judge
from regression.emulation import cases, process, results, subject
from regression.emulation.compiler import CompileError
from regression.emulation.emulator import Emulator
from regression.emulation.results import Emulation
from regression.emulation.subject import Emulated
from regression.judge import Judgement
from regression.recording import Start
from regression.target import ARCHITECTURES, TargetError

KIND = "emulation"
PLAIN_COLUMNS = 140
SHOWN = 24


def add_options(verb: argparse.ArgumentParser) -> None:
    """The options of `emulate`."""
    one = verb.add_mutually_exclusive_group()
    one.add_argument("--artifact", type=Path, metavar="DIR", help="the sources of this cuda artifact, or set")
    one.add_argument(
        "--source", type=Path, metavar="DIR", help="this kernels/ folder; default: the work tree"
    )
    one.add_argument("--emulator", type=Path, metavar="SO", help="an emulator that was compiled before")
    text = "a host artifact or library known to be right; default: the host backend of the same sources"
    verb.add_argument("--against", type=Path, metavar="PATH", help=text)
    text = "an artifact, or set; where its CUDA code is the same, there is nothing to emulate"
    verb.add_argument("--base", type=Path, metavar="PATH", help=text)
    verb.add_argument("--arch", choices=(*ARCHITECTURES, "all"), default="all", help="default: all")
    text = "core (default), all, or names with commas"
    verb.add_argument("--cases", default="core", metavar="NAMES", help=text)
    verb.add_argument("--json", type=Path, metavar="PATH", help="write the records there too")


def run(options: argparse.Namespace) -> Judgement:
    """Emulate each architecture, print what differs, keep the records, say what it comes to."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PLAIN_COLUMNS)
    kept: list[Record] = []
    try:
        judgement = _all(options, cases.select(options.cases), console, kept)
    except FixtureError as error:
        return judge.usage(str(error))
    _write(options.json, kept, judgement)
    return judgement


def _all(
    options: argparse.Namespace, names: Sequence[str], console: Console, kept: list[Record]
) -> Judgement:
    """One architecture after the other. What can't be had leaves unsaid what comes after it, not before."""
    each: list[Judgement] = []
    try:
        for one in subject.resolve(options):
            each.append(_emulate(one, names, options, console, kept))
        return results.together(each) if each else _same_code(options)
    except (CompileError, TargetError) as error:
        if error.code == "usage":
            return judge.usage(str(error))
        return results.together([*each, judge.unknown(error.code, str(error))])


def _emulate(
    one: Emulated, names: Sequence[str], options: argparse.Namespace, console: Console, kept: list[Record]
) -> Judgement:
    start = Start.now()
    console.print(f"{one.label}: {len(names)} cases, against {one.host}", markup=False, soft_wrap=True)
    found = process.emulate(one.emulator, one.host, names)
    knows_launch = Emulator(one.emulator).knows_launch
    judgement = results.decide(found, scope=one.label, knows_launch=knows_launch)
    if any(result.findings for result in found.results):
        console.print(_table(one.arch, found))
    if found.stopped:
        console.print(found.stopped, markup=False, soft_wrap=True)
    kept.append(_record(one, found, options.cases, judgement, start))
    console.print(f"record: {store.append(kept[-1])}", markup=False, soft_wrap=True)
    return judge.claimed(judgement, one.dirty)


def _same_code(options: argparse.Namespace) -> Judgement:
    """Where the base's code is the same no record is made, and a verdict asks for none."""
    reason = judge.Reason(code="identical", text="the base has the same CUDA code, so nothing was emulated")
    return judge.claimed(
        Judgement(word="admitted", reasons=(reason,)), subject.side_of(options.artifact).dirty
    )


def _record(one: Emulated, found: Emulation, selection: str, judgement: Judgement, start: Start) -> Record:
    return record.make(
        kind=KIND,
        artifact=one.subject,
        inputs=integrity.manifest_hash(),
        selection={"cases": selection},
        outcome=ending.CHECKED[judgement.word],
        reasons=[record.Reason(code=reason.code, text=reason.text) for reason in judgement.reasons],
        results={
            "target": one.label,
            "against": sha256_file(one.host),
            "cases": [result.as_json() for result in found.results],
            "stopped": found.stopped,
        },
        started_at=start.at,
        duration_s=time.perf_counter() - start.tick,
    )


def _write(path: Path | None, kept: Sequence[Record], judgement: Judgement) -> None:
    """One architecture's record alone; of several, all of them under the outcome of all."""
    if len(kept) == 1:
        ending.write(path, record.as_json(kept[0]))
    elif kept:
        reasons = [{"code": reason.code, "text": reason.text} for reason in judgement.reasons]
        value = {"outcome": ending.CHECKED[judgement.word], "reasons": reasons}
        ending.write(path, {**value, "records": [record.as_json(each) for each in kept]})


def _table(arch: str, found: Emulation) -> Table:
    table = Table(title="not the host's", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("case", "arch", "threads", "first"):
        table.add_column(heading, overflow="fold")
    hit = [(result.name, finding) for result in found.results for finding in result.findings]
    for name, finding in hit[:SHOWN]:
        table.add_row(name, arch, finding.order, finding.text)
    if len(hit) > SHOWN:
        table.add_row(f"… and {len(hit) - SHOWN} more", "", "", "--json has all")
    return table
