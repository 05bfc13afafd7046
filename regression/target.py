"""What is replayed: a built kernel, a library, an artifact folder or a Python callable."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import artifacts
from artifacts import ArtifactsError, Binary, Side, Targets, dirty
from artifacts.sides import from_path as side_from_path
from evidence import record
from evidence.record import Subject
from grouped_attention import SettingError

OP = "grouped_e4m3_fp32"
ARCHITECTURES = ("sm_70", "sm_80", "sm_90")
REFUSED = "library-refused"
# What a process without AddressSanitizer is told by its runtime.
ASAN_WORDS = "ASan runtime does not come first"
ASAN_ADVICE = (
    "the library is compiled with AddressSanitizer, which only sanitizer memcheck takes: give its plain build"
)


class TargetError(Exception):
    """The thing to replay cannot be had, with a reason code. The text says what to do."""

    def __init__(self, text: str, code: str = "no-target") -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Target:
    """One implementation of the operation.

    `attend(q, k_cache, v_cache, block_table, row_lens, *, softmax_scale, k_scale, v_scale, out[, workspace])`
    writes `out`. `partials` is the debug operation, None for a callable that has none. `extension` is
    None for a callable.
    """

    label: str
    subject: Subject
    attend: Callable[..., Any]
    partials: Callable[..., tuple[torch.Tensor, torch.Tensor]] | None = None
    extension: Any = None
    side: Side | None = None

    @property
    def arch(self) -> str:
        """The architecture whose bits it gives."""
        return self.subject.arch

    @property
    def device(self) -> str:
        """Where its tensors live."""
        return "cuda" if self.subject.backend == "cuda" else "cpu"


def from_callable(name: str, *, backend: str, arch: str | None) -> Target:
    """`module:function` with the signature of the operation, compared with the goldens of `arch`.

    An attribute `partials` of the function is taken as its debug operation.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise TargetError(f"{name!r} is not of the form module:function", "usage")
    try:
        function = getattr(importlib.import_module(module_name), attribute)
    except (Exception, SystemExit) as error:
        raise TargetError(f"{name}: {type(error).__name__}: {error}; is its folder on PYTHONPATH?") from error
    wanted = arch or default_arch(backend)
    return Target(
        label=f"{name} as {backend} {wanted}",
        subject=Subject(backend=backend, arch=wanted, sha256=_source_hash(name, function)),
        attend=function,
        partials=getattr(function, "partials", None),
        side=Side(origin="Python", dirty=dirty.of_instrument()),
    )


def built(backend: str, arch: str | None) -> Target:
    """The kernel of this checkout's work tree, built if need be."""
    targets = Targets(backends=(backend,), architectures=(arch or default_arch(backend),))
    with _refusals():
        side = artifacts.candidate("worktree", targets, progress=_silent)
        return _only(side, backend=backend, arch=arch)


def revision_build(backend: str, arch: str, revision: str | None) -> Target:
    """The kernel of a commit, built if need be."""
    if revision is None:
        raise TargetError("no revision is known", "no-commit")
    targets = Targets(backends=(backend,), architectures=(arch,))
    with _refusals():
        side = artifacts.candidate(revision, targets, progress=_silent)
        return _only(side, backend=backend, arch=arch)


def base_build(backend: str, arch: str, *, of: Side | None) -> Target:
    """The kernel of the base revision of `of` (the work tree), built if need be."""
    targets = Targets(backends=(backend,), architectures=(arch,))
    with _refusals():
        return _only(artifacts.base(None, targets, of=of, progress=_silent), backend=backend, arch=arch)


def from_path(path: Path, *, backend: str | None = None, arch: str | None = None) -> Target:
    """A shared library, an artifact folder, or a folder of several of which backend and arch choose one."""
    with _refusals():
        return _only(side_from_path(path), backend=backend, arch=arch)


def _only(side: Side, *, backend: str | None, arch: str | None) -> Target:
    """The one binary of a side that fits."""
    if side.missing is not None:
        raise TargetError(side.missing[1], side.missing[0])
    if side.failures:
        raise TargetError(side.failures[0].text, side.failures[0].code)
    fitting = [b for b in side.binaries if backend in (None, b.backend) and arch in (None, b.arch)]
    if len(fitting) != 1:
        there = ", ".join(f"{b.backend} {b.arch}" for b in side.binaries) or "nothing"
        raise TargetError(f"{side.origin} holds {there}: choose one with --backend and --arch")
    return _loaded(fitting[0], side)


def _loaded(binary: Binary, side: Side) -> Target:
    if binary.backend == "cuda" and not torch.cuda.is_available():
        raise TargetError(
            f"{binary.library.name} needs a GPU, and torch sees none here: use --backend host", "no-gpu"
        )
    extension = artifacts.load_extension(binary)
    return Target(
        label=_label(binary),
        subject=record.subject_of(binary, revision=side.revision, dirty=_is_dirty(side)),
        attend=getattr(extension, OP),
        partials=getattr(extension, f"{OP}_partials"),
        extension=extension,
        side=side,
    )


def _label(binary: Binary) -> str:
    """What an admission names: without a manifest nothing but its hash says what the library is."""
    foreign = "foreign library, known by its hash " if binary.code_digest is None else ""
    return f"{binary.backend} {binary.arch} ({foreign}{binary.sha256[:12]})"


def _is_dirty(side: Side) -> bool | None:
    """None where no revision says what the sources should be."""
    return True if side.dirty else None if side.revision is None else False


@contextmanager
def _refusals() -> Iterator[None]:
    """What building and loading raise, as one error."""
    try:
        yield
    except ArtifactsError as error:
        text = ASAN_ADVICE if ASAN_WORDS in error.text else error.text
        raise TargetError(text, error.code) from error
    except SettingError as error:
        raise TargetError(str(error), "bad-setting") from error
    except OSError as error:
        advice = "libraries are kept in $GROUPED_ATTENTION_STORE, else $KERNELGATE_HOME: can it be written?"
        raise TargetError(f"{error}; {advice}") from error
    except (RuntimeError, ValueError) as error:
        raise TargetError(str(error)) from error


def default_backend() -> str:
    """cuda where there is a GPU, else host."""
    return "cuda" if torch.cuda.is_available() else "host"


def default_arch(backend: str) -> str:
    """The GPU's architecture for cuda; sm_70, which the kernel was made for, on the host."""
    if backend != "cuda":
        return "sm_70"
    if not torch.cuda.is_available():
        raise TargetError("no GPU on this machine: use --backend host", "no-gpu")
    major, minor = torch.cuda.get_device_capability()
    return {7: "sm_70", 8: "sm_80"}.get(major, f"sm_{major}{minor}")


def _source_hash(name: str, function: Callable[..., Any]) -> str:
    """A callable's identity: its name and the file that defines it."""
    try:
        source = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        source = None
    # A frozen module names a file that isn't there.
    content = Path(source).read_bytes() if source and Path(source).is_file() else b""
    return hashlib.sha256(f"{name}\0".encode() + content).hexdigest()


def _silent(_text: str) -> None:
    """Builds report to nobody."""
