"""What is to be judged here: faults with the gates that must catch them, and what needs another machine."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fixtures import faults
from fixtures.faults import Fault, FaultError
from fixtures.faults.catalogue import UnknownFaultError
from regression.faults import gates
from regression.faults.gates import Gate, Selection

# Too small for one comparison to be sure of: `benchmarks calibrate` measures how often they are seen.
CALIBRATED = ("spin-half-percent", "spin-fifth-percent")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One fault in one backend and architecture. `elsewhere` are its gates that can't run on this machine."""

    fault: Fault
    backend: str
    arch: str
    gates: tuple[Gate, ...]
    elsewhere: tuple[Gate, ...] = ()

    @property
    def emulated(self) -> bool:
        """Whether the CUDA sources are emulated."""
        return any(gate.name == "emulated" for gate in self.gates)

    @property
    def binary(self) -> bool:
        """Whether a library is needed."""
        return any(gate.name != "emulated" for gate in self.gates)

    @property
    def twin(self) -> bool:
        """Whether a library under AddressSanitizer is needed."""
        return self.backend == "host" and any(gate.name == "memcheck" for gate in self.gates)

    def selection(self, gate: Gate) -> Selection:
        """What the gate is run on."""
        return gates.selection_for(gate, self.fault)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What runs, and the faults of which nothing runs, by why: they are never counted as caught.

    `other_place` are those of another architecture, or of the other backend alone.
    """

    trials: tuple[Trial, ...]
    needs_gpu: tuple[str, ...]
    other_place: tuple[str, ...] = ()


def choose(only: str | None, folder: Path) -> tuple[Fault, ...]:
    """The faults of a folder that a comma-separated list names, or all.

    UnknownFaultError for an unknown name, and where there is nothing to choose.
    """
    if not folder.is_dir():
        raise UnknownFaultError(f"--catalogue {folder}: no such folder")
    if only is not None:
        chosen = tuple(faults.find(name.strip(), folder) for name in only.split(",") if name.strip())
    else:
        chosen = tuple(
            fault
            for fault in faults.catalogue(folder)
            if fault.gates != (gates.TIME_BASE,) and fault.name not in CALIBRATED
        )
    if not chosen:
        raise UnknownFaultError(f"no fault is chosen of {folder}: name some that it holds")
    return chosen


def check(chosen: Sequence[Fault], source: Path, work: Path) -> None:
    """FaultError for a patch that doesn't fit the sources, whether or not a gate will run on it here, and for
    a fault that names a gate which can't run where it is planted.
    """
    for fault in chosen:
        _check_gates(fault)
        folder = work / "fitted" / fault.name
        faults.plant(fault, source, folder)
        shutil.rmtree(folder)


def _check_gates(fault: Fault) -> None:
    possible = {backend: {gate.name for gate in _gates(fault, backend)} for backend in fault.backends}
    idle = [backend for backend, names in possible.items() if not names]
    if fault.gates == (gates.TIME_BASE,):
        return
    if idle:
        raise FaultError(f"{fault.name}: none of its gates can run in the backend {idle[0]}")
    never = gates.named(fault) - set().union(*possible.values())
    if never:
        where = ", ".join(fault.backends)
        raise FaultError(f"{fault.name}: {', '.join(sorted(never))} can't run in the backend {where}")


def plan(chosen: Sequence[Fault], *, backend: str, arch: str, gpu: bool) -> Plan:
    """The trials of a backend. Beside the host's gates, those of CUDA code are judged that need no GPU.

    FaultError for a fault that names an unknown gate.
    """
    trials, needs_gpu, other_place = [], [], []
    for fault in chosen:
        wanted = [_trial(fault, backend, arch, gpu)]
        if backend == "host":
            wanted.append(_trial(fault, "cuda", _cuda_arch(fault, arch), gpu=False))
        fitting = [trial for trial in wanted if trial is not None]
        found = [trial for trial in fitting if trial.gates]
        trials += found
        needs_gpu += [fault.name] if fitting and not found else []
        other_place += [_placed(fault)] if not fitting else []
    # Builds for a memory tool take longest: the other faults needn't wait for them.
    ordered = tuple(sorted(trials, key=lambda trial: trial.twin))
    return Plan(trials=ordered, needs_gpu=tuple(needs_gpu), other_place=tuple(other_place))


def _placed(fault: Fault) -> str:
    """The fault with where it can be planted."""
    return " ".join([fault.name, f"({'/'.join([*fault.backends, *fault.architectures])})"])


def _gates(fault: Fault, backend: str) -> tuple[Gate, ...]:
    try:
        return gates.of(fault, backend)
    except KeyError as error:
        raise FaultError(
            f"{fault.name}: no gate is called {error}; there are {', '.join(gates.GATES)}"
        ) from error


def _trial(fault: Fault, backend: str, arch: str, gpu: bool) -> Trial | None:
    if not fault.fits(backend, arch):
        return None
    wanted = _gates(fault, backend)
    here = tuple(gate for gate in wanted if gpu or backend not in gate.needs_gpu)
    elsewhere = tuple(gate for gate in wanted if gate not in here)
    return Trial(fault=fault, backend=backend, arch=arch, gates=here, elsewhere=elsewhere)


def _cuda_arch(fault: Fault, arch: str) -> str:
    return arch if fault.fits("cuda", arch) or not fault.architectures else fault.architectures[0]
