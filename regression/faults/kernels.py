"""Where faulty and sound kernels come from: built here, or unpacked from a folder that travelled."""

from __future__ import annotations

import hashlib
import json
import lzma
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from evidence import places
from fixtures import faults
from fixtures.faults import Fault, FaultError
from grouped_attention.build import BuildError
from regression.emulation import compiler
from regression.faults.gates import Built
from regression.faults.tree import Tree
from regression.faults.trials import Trial

INDEX, ARCHIVE = "faults.json", "kernels.tar.xz"
# Quick, but with a window over several kernels, which differ by little.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 32 << 20}]
TIME_BASE = "spin-nothing"
PYTHON = "grouped_attention/"


class PackError(Exception):
    """A folder doesn't hold what `pack` writes."""


class PlaceError(Exception):
    """A pack can't go there."""


class Kernels(Protocol):
    """Gives the kernel of a trial, and the sound one that it was planted in."""

    def faulty(self, trial: Trial) -> Built:
        """With the fault."""
        ...

    def sound(self, trial: Trial) -> Built:
        """Without it."""
        ...


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """Builds them in `work` into `store`."""

    source: Path
    work: Path
    store: Path
    _trees: dict[tuple[str, str, str], Tree] = field(default_factory=dict)

    def faulty(self, trial: Trial) -> Built:
        """Build the fault; FaultError when it doesn't fit, BuildError when it doesn't compile."""
        fault, folder = trial.fault, self.work / f"{trial.fault.name}-{trial.backend}-{trial.arch}"
        emulated = self._emulated(trial, folder / "emulated") if trial.emulated else Built()
        if not trial.binary:
            return emulated
        tree = self._tree(trial)
        artifact = tree.faulty(fault)
        package = tree.package(folder / "python") if _is_python(fault) else None
        twin = self._tree(trial, "address").faulty(fault) if trial.twin else None
        if fault.keeps_manifest:
            artifact = _swapped(tree.sound(), artifact, folder / "swapped")
        base = tree.faulty(faults.find(TIME_BASE)) if _is_timed(trial) else None
        return replace(emulated, artifact=artifact, twin=_library(twin), package=package, base=base)

    def sound(self, trial: Trial) -> Built:
        """The kernel as it is; for a timed trial, what the spins are compared with."""
        if _is_timed(trial):
            base = self._tree(trial).faulty(faults.find(TIME_BASE))
            return Built(artifact=base, base=base)
        emulated = self._emulated(trial, None) if trial.emulated else Built()
        if not trial.binary:
            return emulated
        twin = self._tree(trial, "address").sound() if trial.twin else None
        return replace(emulated, artifact=self._tree(trial).sound(), twin=_library(twin))

    def _emulated(self, trial: Trial, folder: Path | None) -> Built:
        """The emulator of the faulty sources, planted in `folder`, or without one of the sound ones."""
        source = self.source if folder is None else faults.plant(trial.fault, self.source, folder)
        try:
            emulator = compiler.build(source, trial.arch, self.store)
        except compiler.CompileError as error:
            raise BuildError(f"{trial.fault.name}: {error}") from error
        return Built(emulator=emulator, against=self._tree(replace(trial, backend="host")).sound())

    def _tree(self, trial: Trial, variant: str = "release") -> Tree:
        key = (trial.backend, trial.arch, variant)
        if key not in self._trees:
            work = self.work / "-".join(key)
            self._trees[key] = Tree(
                self.source, work, self.store, backend=key[0], arch=key[1], variant=variant
            )
        return self._trees[key]


@dataclass(frozen=True, kw_only=True)
class Travelled:
    """Unpacks what `pack` packed; the patches of this checkout must be those that were built."""

    folder: Path
    index: dict[str, Any]

    def faulty(self, trial: Trial) -> Built:
        """What was built of the fault; FaultError when it wasn't, or from another patch."""
        entry = self.index["faulty"].get(trial.fault.name)
        if entry is None or entry["patch"] != digest(trial.fault):
            raise FaultError(
                f"{trial.fault.name}: not built there, or from another patch: build the folder again"
            )
        return self._built(entry["built"])

    def sound(self, trial: Trial) -> Built:
        """What was built without it."""
        return self._built(self.index["sound"]["time" if _is_timed(trial) else "kernel"])

    def _built(self, paths: dict[str, str]) -> Built:
        return Built(**{name: self.folder / path for name, path in paths.items()})


def pack(trials: Sequence[Trial], workshop: Workshop, out: Path, progress: Any = print) -> Path:
    """Build all trials' kernels and pack them, for a machine without a compiler, into the folder `out`."""
    faulty = {}
    for trial in trials:
        progress(f"building {trial.fault.name}")
        faulty[trial] = workshop.faulty(trial)
    control = _controls(workshop.work / "control", trials[0])
    cargo = _Cargo(control=control)
    index = {
        "backend": trials[0].backend,
        "arch": trials[0].arch,
        "sound": {name: cargo.add(built) for name, built in _sound(trials, workshop).items()},
        "faulty": {
            trial.fault.name: {"patch": digest(trial.fault), "built": cargo.add(built)}
            for trial, built in faulty.items()
        },
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / INDEX).write_text(json.dumps(index, indent=1, sort_keys=True) + "\n")
    with (
        lzma.open(out / ARCHIVE, "wb", filters=FILTERS) as packed,
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        for path, name in cargo.names.items():
            archive.add(path, name)
    return out


def _sound(trials: Sequence[Trial], workshop: Workshop) -> dict[str, Built]:
    """What any of the trials may need of the sound kernel; the spins are compared with another."""
    timed = [trial for trial in trials if _is_timed(trial)]
    parts = [workshop.sound(trial) for trial in trials if not _is_timed(trial)]
    given = {name: path for built in parts for name, path in vars(built).items() if path is not None}
    return {"kernel": Built(**given), **({"time": workshop.sound(timed[0])} if timed else {})}


def unpack(folder: Path, work: Path) -> Travelled:
    """The kernels of a folder that `pack` wrote; PackError when it can't be read."""
    index = _index(folder)
    try:
        with tarfile.open(folder / ARCHIVE) as archive:
            archive.extractall(work, filter="data")
    except (OSError, EOFError, ValueError, lzma.LZMAError, tarfile.TarError) as error:
        what = f"{type(error).__name__}: {error}"
        raise PackError(f"{folder / ARCHIVE} can't be unpacked ({what}): bring it here again") from error
    return Travelled(folder=work, index=index)


def _index(folder: Path) -> dict[str, Any]:
    try:
        index = json.loads((folder / INDEX).read_text())
    except (OSError, ValueError) as error:
        raise PackError(f"{folder} holds no built faults: {error}") from error
    if not isinstance(index, dict) or not {"backend", "arch", "sound", "faulty"} <= set(index):
        raise PackError(f"{folder / INDEX} is no index of built faults")
    return index


def check_place(out: Path) -> None:
    """PlaceError unless `out` is missing, empty, or holds an earlier pack and nothing else."""
    if out.exists() and not out.is_dir():
        raise PlaceError(f"--out {out} is no folder")
    found = sorted(path.name for path in out.iterdir()) if out.exists() else []
    foreign = [name for name in found if name not in (INDEX, ARCHIVE)]
    if not found:
        return
    try:
        _index(out)
    except PackError:
        foreign = foreign or found
    if foreign:
        raise PlaceError(f"--out {out} holds {foreign[0]}, which is of no earlier pack: choose a new folder")


def digest(fault: Fault) -> str:
    """SHA-256 of the patch without its header, which is about the gates."""
    return hashlib.sha256(fault.patch.read_bytes().partition(b"\n\n")[2]).hexdigest()


@dataclass(frozen=True, kw_only=True)
class _Cargo:
    """Files and folders on their way, each under a name of its own."""

    control: Path
    names: dict[Path, str] = field(default_factory=dict)

    def add(self, built: Built) -> dict[str, str]:
        """The names of a kernel's files in the archive."""
        paths = {**vars(built), "control": self.control}
        return {word: self._name(path) for word, path in paths.items() if path is not None}

    def _name(self, path: Path) -> str:
        return self.names.setdefault(path, f"{len(self.names):03}-{path.name[:40]}")


def _controls(folder: Path, trial: Trial) -> Path:
    """The sanitizer's planted kernels."""
    command = [sys.executable, "-m", "sanitizer.controls", "--arch", trial.arch, "--out", str(folder)]
    done = subprocess.run(
        command, cwd=places.root(), capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0:
        raise FaultError(f"the sanitizer's planted kernels can't be built: {done.stderr[-400:]}")
    return Path(done.stdout.splitlines()[-1])


def _is_python(fault: Fault) -> bool:
    return any(path.startswith(PYTHON) for path in faults.touched(fault))


def _is_timed(trial: Trial) -> bool:
    return any(gate.name == "time" for gate in (*trial.gates, *trial.elsewhere))


def _swapped(sound: Path, faulty: Path, folder: Path) -> Path:
    """The faulty library in a copy of the sound one's folder, whose manifest stays."""
    shutil.copytree(sound, folder, copy_function=shutil.copyfile)
    (library,) = faulty.glob("*.so")
    shutil.copyfile(library, folder / library.name)
    return folder


def _library(folder: Path | None) -> Path | None:
    return None if folder is None else next(folder.glob("*.so"))
