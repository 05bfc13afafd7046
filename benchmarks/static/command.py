"""`python -m benchmarks static`: costs of each cuda library of an artifact, one record each."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from artifacts.errors import ArtifactsError
from artifacts.sides import Binary, Side, from_path
from benchmarks.static import costs, judge
from benchmarks.static.costs import Costs, CostsError
from evidence import ending, record, store
from evidence.ending import Verdict
from evidence.record import Reason
from grouped_attention.load import ARCHITECTURES

WORST_FIRST = ("fail", "unknown", "pass")
WORDS = {"pass": "admitted", "fail": "rejected", "undecided": "undecided", "unknown": "unknown"}
COLUMNS = (
    "registers",
    "registers_per_block",
    "spill_bytes",
    "local_bytes",
    "shared_bytes",
    "blocks_per_multiprocessor",
    "code_bytes",
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Of one library: its costs, the base's, and what was concluded."""

    word: str
    reasons: tuple[Reason, ...]
    candidate: tuple[Costs, ...] = ()
    base: tuple[Costs, ...] | None = None


def run(options: argparse.Namespace) -> int:
    """Judge every cuda library, print the tables, keep the records, end with the verdict's line."""
    try:
        candidate = from_path(options.artifact)
        base = None if options.base is None else from_path(options.base)
    except ArtifactsError as error:
        return _end("unknown", Reason(code=error.code, text=error.text), options.json)
    chosen = [b for b in candidate.binaries if b.backend == "cuda" and options.arch in (None, b.arch)]
    if not chosen:
        wanted = " ".join(("cuda", options.arch or "library"))
        text = f"{options.artifact} holds {_held(candidate)}, no {wanted}"
        return _end("unknown", Reason(code="no-static-costs", text=text), options.json)
    outcomes = [_one(binary, candidate, base) for binary in chosen]
    ending.write(options.json, [_json(*pair) for pair in zip(chosen, outcomes, strict=True)])
    worst = min(outcomes, key=lambda outcome: WORST_FIRST.index(outcome.word))
    if worst.word == "pass" and candidate.dirty:
        text = f"{worst.reasons[0].text}, but {candidate.dirty[0]} differs from the commit"
        return _end("undecided", Reason(code="dirty-tree", text=text), options.json)
    return _end(worst.word, worst.reasons[0], options.json)


def judged(binary: Binary, base: Side | None) -> Outcome:
    """Costs of one library against its limits and its twin in the base; one that can't be read is unknown."""
    try:
        mine = costs.read(binary)
        # A base that can't be read doesn't hide a candidate that is over a limit.
        theirs = None if base is None or judge.complaints(mine, None) else _theirs(binary, base)
    except CostsError as error:
        return Outcome(word="unknown", reasons=(Reason(code=error.code, text=str(error)),))
    found = judge.complaints(mine, theirs)
    if found:
        return Outcome(word="fail", reasons=found, candidate=mine, base=theirs)
    against = "its limits" if theirs is None else "its limits and the base"
    praise = Reason(code="within-limits", text=f"cuda {binary.arch}: {len(mine)} kernels against {against}")
    return Outcome(word="pass", reasons=(praise,), candidate=mine, base=theirs)


def _theirs(binary: Binary, base: Side) -> tuple[Costs, ...] | None:
    """The costs of the base's twin, None of a foreign library; CostsError when there is no twin."""
    twin = _twin(binary, base)
    if twin is None:
        text = f"the base {base.origin} holds {_held(base)}, not {binary.backend} {binary.arch}"
        raise CostsError("no-binary", text)
    return None if twin.directory is None else costs.read(twin)


def _held(side: Side) -> str:
    return ", ".join(f"{b.backend} {b.arch}" for b in side.binaries) or "nothing"


def table(outcome: Outcome) -> str:
    """One line per kernel; a figure that differs from the base's shows both."""
    old = {c.kernel: c for c in outcome.base or ()}
    head = ("kernel", *(column.replace("_per_", "/").replace("_", " ") for column in COLUMNS))
    rows = [
        head,
        *((c.kernel, *(_cell(c, old.get(c.kernel), name) for name in COLUMNS)) for c in outcome.candidate),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)


def _one(binary: Binary, side: Side, base: Side | None) -> Outcome:
    started, tick = datetime.now(UTC), time.perf_counter()
    outcome, twin = judged(binary, base), _twin(binary, base)
    if twin is not None and twin.directory is None:
        print(f"the base {twin.library} comes without a compiler's report: limits alone are held")
        twin = None
    made = record.make(
        kind="static",
        artifact=record.subject_of(binary, revision=side.revision, dirty=bool(side.dirty)),
        inputs="",
        selection={"base": None if twin is None else twin.code_digest or twin.sha256},
        outcome=outcome.word,
        reasons=outcome.reasons,
        results={"kernels": [costs.to_json(c) for c in outcome.candidate]},
        started_at=started,
        duration_s=time.perf_counter() - tick,
    )
    _show(binary, outcome, store.append(made))
    return outcome


def _show(binary: Binary, outcome: Outcome, kept: Path) -> None:
    print(f"cuda {binary.arch}")
    if outcome.candidate:
        print(table(outcome))
    for reason in outcome.reasons:
        print(f"{reason.code}: {reason.text}")
    print(f"record: {kept}")


def _twin(binary: Binary, base: Side | None) -> Binary | None:
    fitting = (
        b for b in (base.binaries if base else ()) if (b.backend, b.arch) == (binary.backend, binary.arch)
    )
    return next(fitting, None)


def _cell(new: Costs, old: Costs | None, name: str) -> str:
    value, before = getattr(new, name), None if old is None else getattr(old, name)
    return str(value) if before in (None, value) else f"{before} -> {value}"


def _json(binary: Binary, outcome: Outcome) -> dict[str, Any]:
    return {
        "arch": binary.arch,
        "sha256": binary.sha256,
        "code_digest": binary.code_digest,
        "outcome": outcome.word,
        "reasons": [{"code": reason.code, "text": reason.text} for reason in outcome.reasons],
        "kernels": [costs.to_json(c) for c in outcome.candidate],
        "base": None if outcome.base is None else [costs.to_json(c) for c in outcome.base],
    }


def _end(word: str, reason: Reason, path: Path | None) -> int:
    return ending.end(Verdict(word=WORDS[word], code=reason.code, text=reason.text), path)


def add_options(verb: argparse.ArgumentParser) -> None:
    """The options of `static`."""
    verb.add_argument(
        "--artifact", type=Path, required=True, metavar="DIR", help="a cuda artifact, or a folder of several"
    )
    verb.add_argument("--base", type=Path, metavar="DIR", help="the same of the base, to compare with")
    verb.add_argument("--arch", choices=ARCHITECTURES, help="only this architecture")
    verb.add_argument("--json", type=Path, metavar="PATH", help="write the costs there too")
