"""Fault by gate: what was caught, what was missed, and how often a gate cried over a sound kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regression import judge
from regression.faults.gates import GATES
from regression.faults.runs import BROKEN, CAUGHT, SILENT, Run
from regression.faults.trials import Trial
from regression.judge import Judgement, Reason

SHOWN = {CAUGHT: "caught", SILENT: "MISSED", BROKEN: "BROKE"}
NOT_ASKED, ELSEWHERE = "·", "gpu"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One fault and what its gates said. It is caught when every gate that must catch it did."""

    trial: Trial
    runs: tuple[Run, ...]

    @property
    def caught(self) -> bool:
        """True when no gate missed it."""
        return bool(self.runs) and all(run.word == CAUGHT for run in self.runs)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        trial = self.trial
        return {
            "fault": trial.fault.name,
            "backend": trial.backend,
            "arch": trial.arch,
            "caught": self.caught,
            "runs": [asdict(run) for run in self.runs],
            "elsewhere": [gate.name for gate in trial.elsewhere],
        }


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """All rows, the runs on sound kernels, and the faults that weren't judged, by why."""

    rows: tuple[Row, ...]
    clean: tuple[Run, ...]
    needs_gpu: tuple[str, ...] = ()
    other_place: tuple[str, ...] = ()

    @property
    def left_out(self) -> str:
        """What was not judged, with its numbers; empty when nothing was left out."""
        parts = ((self.needs_gpu, "need a GPU"), (self.other_place, "are of another architecture or backend"))
        return ", ".join(f"{len(names)} {why}" for names, why in parts if names)

    @property
    def false_alarms(self) -> tuple[Run, ...]:
        """Gates that caught something in a sound kernel."""
        return tuple(run for run in self.clean if run.word == CAUGHT)

    @property
    def counts(self) -> str:
        """The line before the verdict."""
        caught = sum(row.caught for row in self.rows)
        return f"caught {caught}/{len(self.rows)}, false alarms {len(self.false_alarms)}/{len(self.clean)}"

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "matrix": [row.as_json() for row in self.rows],
            "clean": [asdict(run) for run in self.clean],
            "needs_gpu": list(self.needs_gpu),
            "other_place": list(self.other_place),
            "counts": self.counts,
        }


def table(matrix: Matrix) -> str:
    """A line per fault, a column per gate that some fault names."""
    named = {g.name for row in matrix.rows for g in (*row.trial.gates, *row.trial.elsewhere)}
    columns = [name for name in GATES if name in named]
    rows = [("fault", "planted in", *columns), *(_cells(row, columns) for row in matrix.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def complaints(matrix: Matrix) -> list[str]:
    """What was missed or cried wrongly, and what wasn't judged."""
    lines = [
        f"{row.trial.fault.name}: {SHOWN[run.word]} by {run.gate}: {run.text}"
        for row in matrix.rows
        for run in row.runs
        if run.word != CAUGHT
    ]
    lines += [
        f"sound kernel: {run.gate} {run.word}: {run.text}" for run in matrix.clean if run.word != SILENT
    ]
    if matrix.needs_gpu:
        lines.append(f"{len(matrix.needs_gpu)} need a GPU: {', '.join(matrix.needs_gpu)}")
    if matrix.other_place:
        names = ", ".join(matrix.other_place)
        lines.append(f"{len(matrix.other_place)} are of another architecture or backend: {names}")
    return lines


def decide(matrix: Matrix, *, scope: str) -> Judgement:
    """The verdict. A gate that breaks on a sound kernel is the machinery's failure."""
    broke = [run for run in matrix.clean if run.word == BROKEN]
    if broke:
        return judge.error("gate-broke", f"{broke[0].gate} on the sound kernel: {broke[0].text}")
    missed = [row.trial.fault.name for row in matrix.rows if not row.caught]
    alarms = matrix.false_alarms
    reasons = []
    if missed:
        reasons.append(
            Reason(code="fault-missed", text=f"{len(missed)} of {len(matrix.rows)}, first {missed[0]}")
        )
    if alarms:
        text = f"{len(alarms)} of {len(matrix.clean)}, first {alarms[0].gate}: {alarms[0].text}"
        reasons.append(Reason(code="false-alarm", text=text))
    if reasons:
        return Judgement(word="rejected", reasons=tuple(reasons))
    if not matrix.rows:
        return judge.unknown("nothing-planted", f"no fault can be judged here: {matrix.left_out or 'none'}")
    gap = f", {matrix.left_out}" if matrix.left_out else ""
    text = f"{scope}: {len(matrix.rows)} faults, each by every gate that must catch it{gap}"
    return Judgement(word="admitted", reasons=(Reason(code="all-caught", text=text),))


def _cells(row: Row, columns: Sequence[str]) -> tuple[str, ...]:
    words = {run.gate: _cell(run) for run in row.runs}
    words |= {gate.name: ELSEWHERE for gate in row.trial.elsewhere}
    place = f"{row.trial.backend} {row.trial.arch}"
    return (row.trial.fault.name, place, *(words.get(name, NOT_ASKED) for name in columns))


def _cell(run: Run) -> str:
    return SHOWN[run.word] + (f" {run.runs}." if run.runs > 1 else "")
