"""The gates as commands: what each is run with, where it can run, and what its end means.

Gates of other packages are run as anybody runs them, as processes: a faulty kernel may end one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fixtures.faults import Fault

# A few groups of both instances in each layout; together they take a second.
DEFAULT_GROUPS = ("3x64-8k-01", "3x64-8k-10", "6x256-8k-01", "6x256-8k-11")
TIME_BASE = "time-base"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


@dataclass(frozen=True, kw_only=True)
class Built:
    """One kernel as artifacts. `twin` is its library under AddressSanitizer, `package` its Python package,
    if the fault lies there; `control` the sanitizer's planted kernels for a machine without a compiler.
    `emulator` emulates its CUDA sources, to be held against the sound kernel's host artifact `against`; where
    that is all that is asked, there is no `artifact`.
    """

    artifact: Path | None = None
    twin: Path | None = None
    package: Path | None = None
    control: Path | None = None
    base: Path | None = None
    emulator: Path | None = None
    against: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What a gate is run on."""

    groups: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()


Arguments = Callable[[Built, Selection], list[str]]


@dataclass(frozen=True, kw_only=True)
class Gate:
    """`needs_gpu` says for which backends. `refuses`: it catches by refusing to load, exit code 4."""

    name: str
    arguments: Arguments
    backends: tuple[str, ...]
    needs_gpu: tuple[str, ...] = ("cuda",)
    limit_s: float = 150.0
    refuses: bool = False
    alone: bool = False


def _replay(built: Built, selection: Selection) -> list[str]:
    groups = ",".join(selection.groups or DEFAULT_GROUPS)
    return ["regression", "replay", "--artifact", str(built.artifact), "--groups", groups]


def _load(built: Built, _selection: Selection) -> list[str]:
    return _replay(built, Selection(groups=DEFAULT_GROUPS[:1]))


def _contract(built: Built, selection: Selection) -> list[str]:
    return ["regression", "contract", "--artifact", str(built.artifact), *_cases(selection)]


def _tool(tool: str) -> Arguments:
    def arguments(built: Built, selection: Selection) -> list[str]:
        what = ["--artifact", str(built.artifact)] if built.twin is None else ["--library", str(built.twin)]
        control = [] if built.control is None else ["--control", str(built.control)]
        return ["sanitizer", tool, *what, *_cases(selection), *control]

    return arguments


def _emulated(built: Built, selection: Selection) -> list[str]:
    sides = ["--emulator", str(built.emulator), "--against", str(built.against)]
    return ["regression", "emulate", *sides, *_cases(selection)]


def _static(built: Built, _selection: Selection) -> list[str]:
    return ["benchmarks", "static", "--artifact", str(built.artifact)]


def _time(built: Built, _selection: Selection) -> list[str]:
    sides = ["--base", str(built.base), "--candidate", str(built.artifact), "--aa"]
    return ["benchmarks", "abba", *sides, "--contexts", "131072", "--budget", "10s"]


def _cases(selection: Selection) -> list[str]:
    return ["--cases", ",".join(selection.cases)] if selection.cases else ["--cases", "core"]


BOTH = ("host", "cuda")
GATES = {
    gate.name: gate
    for gate in (
        Gate(name="load", arguments=_load, backends=BOTH, refuses=True),
        Gate(name="replay", arguments=_replay, backends=BOTH),
        Gate(name="contract", arguments=_contract, backends=BOTH),
        Gate(name="memcheck", arguments=_tool("memcheck"), backends=BOTH),
        *(Gate(name=tool, arguments=_tool(tool), backends=("cuda",)) for tool in TOOLS[1:]),
        Gate(name="emulated", arguments=_emulated, backends=("cuda",), needs_gpu=()),
        Gate(name="static", arguments=_static, backends=("cuda",), needs_gpu=()),
        Gate(name="time", arguments=_time, backends=("cuda",), alone=True),
    )
}
# What a patch may name in their place: the contract's own gates.
PARTS_OF_CONTRACT = ("exact", "nan", "control", "budget", "partial-bound", "states")


def of(fault: Fault, backend: str) -> tuple[Gate, ...]:
    """The gates that must catch the fault in this backend, cheapest first. KeyError for an unknown name."""
    wanted = named(fault)
    for name in wanted:
        GATES[name]
    return tuple(gate for gate in GATES.values() if gate.name in wanted and backend in gate.backends)


def named(fault: Fault) -> set[str]:
    """The names of the commands that must catch the fault."""
    found = {"contract" if name in PARTS_OF_CONTRACT else name for name in fault.gates}
    return found - {TIME_BASE}


def selection_for(gate: Gate, fault: Fault) -> Selection:
    """What of the fault's selection the gate takes: of a tool's cases, which cost seconds, the first."""
    if gate.name == "replay":
        return Selection(groups=fault.groups)
    if gate.name in ("contract", "emulated"):
        return Selection(cases=fault.cases)
    return Selection(cases=fault.cases[:1] if gate.name in TOOLS else ())


def command(gate: Gate, built: Built, selection: Selection) -> list[str]:
    """The argument list of one run."""
    return [sys.executable, "-m", *gate.arguments(built, selection)]
