"""What is emulated, from which sources, and the host library whose bits it must give."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import artifacts
from artifacts import ArtifactsError, Binary, Side, Targets, export, git
from artifacts.claims import NO_REVISION
from artifacts.places import PRODUCT
from artifacts.sides import from_path
from evidence import places, record
from evidence.record import Subject
from grouped_attention import identity
from grouped_attention.manifest import sha256_file
from regression.emulation import compiler
from regression.emulation.emulator import Emulator
from regression.target import ARCHITECTURES, TargetError


@dataclass(frozen=True, kw_only=True)
class Emulated:
    """One architecture. `emulator` and `host` are libraries; `dirty` is what keeps it from being admitted."""

    arch: str
    emulator: Path
    host: Path
    subject: Subject
    dirty: tuple[str, ...]

    @property
    def label(self) -> str:
        """What a verdict names: the artifact's hash, or for bare sources theirs."""
        name = self.subject.code_digest or self.subject.source_digest or self.subject.sha256
        return f"cuda {self.arch} ({name[:12]})"


def resolve(options: argparse.Namespace) -> Iterator[Emulated]:
    """What the options name, one architecture after the other, compiled; none whose code is the base's.

    TargetError with a reason code when something can't be had; CompileError when the sources don't compile.
    """
    try:
        yield from _resolved(options)
    except ArtifactsError as error:
        raise TargetError(error.text, error.code) from error


def _resolved(options: argparse.Namespace) -> Iterator[Emulated]:
    wanted = ARCHITECTURES if options.arch == "all" else (options.arch,)
    if options.emulator is not None:
        yield _compiled(options)
    elif options.source is not None:
        for arch in wanted:
            yield _of_sources(options.source, arch, options.against)
    else:
        side = side_of(options.artifact, wanted)
        known = _codes(options.base)
        for binary in _chosen(side, wanted):
            if binary.code_digest is None or binary.code_digest not in known:
                yield _of_binary(binary, side, options.against)


def _compiled(options: argparse.Namespace) -> Emulated:
    """Of a library that `compiler.build` made; nothing is known of it but its hash."""
    if options.against is None:
        raise TargetError("--emulator needs --against, a host library to compare with", "usage")
    try:
        arch = Emulator(options.emulator).arch
    except OSError as error:
        raise TargetError(str(error)) from error
    if options.arch not in (arch, "all"):
        raise TargetError(f"{options.emulator.name} is of {arch}, not of {options.arch}", "usage")
    subject = Subject(backend="cuda", arch=arch, sha256=sha256_file(options.emulator))
    host = _host(options.against, arch)
    return Emulated(arch=arch, emulator=options.emulator, host=host, subject=subject, dirty=(NO_REVISION,))


def _of_sources(source: Path, arch: str, against: Path | None) -> Emulated:
    """Of a kernels/ folder: no binary is made, so that the record is about the emulator that was."""
    if not (source / "CMakeLists.txt").is_file():
        raise TargetError(f"--source {source}: no kernels/ folder, it has no CMakeLists.txt", "usage")
    emulator = compiler.build(source, arch, store())
    subject = Subject(
        backend="cuda", arch=arch, sha256=sha256_file(emulator), source_digest=_digest(source), dirty=True
    )
    host = _host(against, arch) if against else _built_host(source, arch)
    return Emulated(arch=arch, emulator=emulator, host=host, subject=subject, dirty=(NO_REVISION,))


def _of_binary(binary: Binary, side: Side, against: Path | None) -> Emulated:
    with _sources(binary, side) as source:
        emulator = compiler.build(source, binary.arch, store())
        host = _host(against, binary.arch) if against else _built_host(source, binary.arch)
    subject = record.subject_of(binary, revision=side.revision, dirty=bool(side.dirty))
    return Emulated(arch=binary.arch, emulator=emulator, host=host, subject=subject, dirty=side.dirty)


def side_of(path: Path | None, wanted: Sequence[str] = ARCHITECTURES) -> Side:
    """The side that lies there, or the work tree's cuda libraries; TargetError when they can't be built."""
    if path is not None:
        return from_path(path)
    targets = Targets(backends=("cuda",), architectures=tuple(wanted))
    side = artifacts.candidate("worktree", targets, progress=_silent)
    if side.failures:
        raise TargetError(side.failures[0].text, side.failures[0].code)
    return side


def _chosen(side: Side, wanted: Sequence[str]) -> tuple[Binary, ...]:
    found = tuple(b for b in side.binaries if b.backend == "cuda" and b.arch in wanted)
    if not found:
        there = ", ".join(f"{b.backend} {b.arch}" for b in side.binaries) or "nothing"
        raise TargetError(f"{side.origin} holds {there}: what is emulated is the sources of a cuda artifact")
    return found


def _codes(base: Path | None) -> frozenset[str | None]:
    """What the base's libraries compute, by digest."""
    return frozenset() if base is None else frozenset(b.code_digest for b in from_path(base).binaries)


@contextmanager
def _sources(binary: Binary, side: Side) -> Iterator[Path]:
    """The kernels/ folder that the binary was built from: the work tree's, else its revision's."""
    if binary.source_digest is None:
        text = f"{binary.library.name} came without a manifest, so nobody knows its sources: pass --source"
        raise TargetError(text, "no-sources")
    for opened in _places(side):
        with opened as folder:
            if _digest(folder) == binary.source_digest:
                yield folder
                return
    text = "the artifact's sources are neither this work tree's nor its revision's: pass them as --source"
    raise TargetError(text, "no-sources")


def _places(side: Side) -> Iterator[AbstractContextManager[Path]]:
    root = places.root()
    if not git.is_repository(root):
        yield nullcontext(root / PRODUCT)
        return
    yield export.worktree(root)
    if side.revision is not None and git.commit(root, side.revision) is not None:
        yield export.revision(root, side.revision)


def _host(path: Path, arch: str) -> Path:
    fitting = [b for b in from_path(path).binaries if (b.backend, b.arch) == ("host", arch)]
    if len(fitting) != 1:
        raise TargetError(f"--against {path} holds no host library of {arch}")
    return fitting[0].library


def _built_host(source: Path, arch: str) -> Path:
    targets = Targets(backends=("host",), architectures=(arch,))
    side = artifacts.candidate(source=source, targets=targets, progress=_silent)
    if side.failures:
        raise TargetError(side.failures[0].text, side.failures[0].code)
    return side.binaries[0].library


def store() -> Path:
    """Where compiled emulators are kept."""
    return places.home() / "emulators"


def _digest(folder: Path) -> str:
    return str(identity.source_digest(identity.read_sources(folder)))


def _silent(_text: str) -> None:
    """Builds report to nobody."""
