"""What can be compared: a revision, an artifact folder, a library, a Python callable, a named peer."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import artifacts
from artifacts import ArtifactsError, Binary, Side, Targets
from artifacts.resolve import FOLDER_MARKS
from benchmarks.peers import catalogue as peers
from evidence import record
from evidence.findings import same_binary
from evidence.record import Subject

OP = "grouped_e4m3_fp32"
WORKTREE = "worktree"


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One side. `attend` has the operation's signature; `extension` is None for a callable or a peer."""

    label: str
    subject: Subject
    attend: Callable[..., Any]
    extension: Any = None


def candidate(spec: str | None, *, backend: str, arch: str) -> Contender:
    """The candidate that `spec` names, the work tree by default; ArtifactsError with a reason code."""
    text = spec or WORKTREE
    if is_python(text):
        return _python(text, backend=backend, arch=arch)
    source = Path(text) if _is_path(Path(text)) else None
    side = artifacts.candidate(text, _targets(backend, arch), source=source, progress=_silent)
    return load(side, backend=backend, arch=arch)


def base(spec: str | None, of: Contender, *, backend: str, arch: str) -> Contender:
    """The base: what `spec` names, else the merge base with main; ArtifactsError says why there is none."""
    if spec is not None and is_python(spec):
        return _python(spec, backend=backend, arch=arch)
    made = Side(
        origin=of.label, revision=of.subject.revision, dirty=("work tree",) if of.subject.dirty else ()
    )
    side = artifacts.base(spec, _targets(backend, arch), of=made, progress=_silent)
    return load(side, backend=backend, arch=arch)


def is_python(spec: str) -> bool:
    """True for `module:function` and `peer:NAME`, which no path or revision can be."""
    module, colon, name = spec.partition(":")
    return bool(colon) and name.isidentifier() | spec.startswith(peers.PREFIX) and not Path(module).is_dir()


def _is_path(path: Path) -> bool:
    return path.is_file() or any((path / name).is_file() for name in FOLDER_MARKS)


def identical(one: Contender, other: Contender) -> bool:
    """True when both are the same code, so that no time can differ between them."""
    return same_binary(one.subject, other.subject)


def load(side: Side, *, backend: str, arch: str) -> Contender:
    """The one library of a side for this backend and architecture."""
    if side.missing is not None:
        raise ArtifactsError(*side.missing)
    if side.failures:
        raise ArtifactsError(side.failures[0].code, side.failures[0].text)
    binary = _fitting(side, backend, arch)
    try:
        extension = artifacts.load_extension(binary)
    except (OSError, RuntimeError, ValueError) as error:
        raise ArtifactsError("artifact-refused", str(error)) from error
    return Contender(
        label=f"{side.origin} ({binary.sha256[:12]})",
        subject=record.subject_of(binary, revision=side.revision, dirty=bool(side.dirty)),
        attend=getattr(extension, OP),
        extension=extension,
    )


def _fitting(side: Side, backend: str, arch: str) -> Binary:
    for binary in side.binaries:
        if (binary.backend, binary.arch) == (backend, arch):
            return binary
    there = ", ".join(f"{b.backend} {b.arch}" for b in side.binaries) or "nothing"
    raise ArtifactsError("no-binary", f"{side.origin} holds {there}, not {backend} {arch}")


def _python(spec: str, *, backend: str, arch: str) -> Contender:
    function = _peer(spec) if spec.startswith(peers.PREFIX) else _callable(spec)
    subject = Subject(backend=backend, arch=arch, sha256=_source_hash(spec, function))
    return Contender(label=spec, subject=subject, attend=function)


def _peer(spec: str) -> Callable[..., Any]:
    try:
        return peers.find(spec.removeprefix(peers.PREFIX))
    except (LookupError, ImportError) as error:
        raise ArtifactsError("no-target", str(error)) from error


def _callable(spec: str) -> Callable[..., Any]:
    module, _, name = spec.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ArtifactsError("no-target", f"{spec}: {error}; is its folder on PYTHONPATH?") from error
    except (Exception, SystemExit) as error:
        raise ArtifactsError("no-target", f"{spec}: importing it raised {error!r}") from error
    return found


def _source_hash(name: str, function: Callable[..., Any]) -> str:
    """A callable's identity: its name and the file that defines it."""
    try:
        source = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        source = None
    content = Path(source).read_bytes() if source else b""
    return hashlib.sha256(f"{name}\0".encode() + content).hexdigest()


def _targets(backend: str, arch: str) -> Targets:
    return Targets(backends=(backend,), architectures=(arch,))


def _silent(_text: str) -> None:
    """Builds report to nobody."""
