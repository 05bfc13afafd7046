"""What is to be judged here: faults with the gates that must catch them, and what needs another machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fixtures import faults
from fixtures.faults import Fault, FaultError
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
    """What runs, and the faults of which nothing runs: they are never counted as caught."""

    trials: tuple[Trial, ...]
    needs_gpu: tuple[str, ...]


def choose(only: str | None, folder: Path) -> tuple[Fault, ...]:
    """The faults of a folder that a comma-separated list names, or all; FaultError for an unknown name."""
    if only is not None:
        return tuple(faults.find(name.strip(), folder) for name in only.split(",") if name.strip())
    return tuple(
        fault
        for fault in faults.catalogue(folder)
        if fault.gates != (gates.TIME_BASE,) and fault.name not in CALIBRATED
    )


def plan(chosen: Sequence[Fault], *, backend: str, arch: str, gpu: bool) -> Plan:
    """The trials of a backend. Beside the host's gates, those of CUDA code are judged that need no GPU.

    FaultError for a fault that names an unknown gate.
    """
    trials, needs_gpu = [], []
    for fault in chosen:
        wanted = [_trial(fault, backend, arch, gpu)]
        if backend == "host":
            wanted.append(_trial(fault, "cuda", _cuda_arch(fault, arch), gpu=False))
        found = [trial for trial in wanted if trial is not None and trial.gates]
        trials += found
        needs_gpu += [fault.name] if not found and "cuda" in fault.backends and not gpu else []
    # Builds for a memory tool take longest: the other faults needn't wait for them.
    return Plan(trials=tuple(sorted(trials, key=lambda trial: trial.twin)), needs_gpu=tuple(needs_gpu))


def _trial(fault: Fault, backend: str, arch: str, gpu: bool) -> Trial | None:
    if not fault.fits(backend, arch):
        return None
    try:
        wanted = gates.of(fault, backend)
    except KeyError as error:
        raise FaultError(
            f"{fault.name}: no gate is called {error}; there are {', '.join(gates.GATES)}"
        ) from error
    here = tuple(gate for gate in wanted if gpu or backend not in gate.needs_gpu)
    elsewhere = tuple(gate for gate in wanted if gate not in here)
    return Trial(fault=fault, backend=backend, arch=arch, gates=here, elsewhere=elsewhere)


def _cuda_arch(fault: Fault, arch: str) -> str:
    return arch if fault.fits("cuda", arch) or not fault.architectures else fault.architectures[0]
