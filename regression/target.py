"""What is replayed: a built kernel, a library, an artifact folder or a Python callable."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grouped_attention as ga
import torch

OP = "grouped_e4m3_fp32"
ARCHITECTURES = ("sm_70", "sm_80", "sm_90")


class TargetError(Exception):
    """The thing to replay cannot be had. The text says what to do."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One implementation of the operation.

    `attend(q, k_cache, v_cache, block_table, row_lens, *, softmax_scale, k_scale, v_scale, out[, workspace])` writes `out`.
    `partials` is the debug operation, None for a callable that has none. `extension` is None for a callable.
    """

    label: str
    backend: str
    arch: str
    device: str
    attend: Callable[..., Any]
    partials: Callable[..., tuple[torch.Tensor, torch.Tensor]] | None = None
    extension: Any = None
    facts: dict[str, Any] = field(default_factory=dict)


def resolve(
    *, backend: str, arch: str | None, library: Path | None, artifact: Path | None, function: str | None
) -> Target:
    """The target that the options name. At most one of `library`, `artifact` and `function` is given.

    TargetError when it cannot be loaded or is of another architecture than the one asked for.
    """
    if function is not None:
        return from_callable(function, backend=backend, arch=arch)
    path = library if library is not None else artifact
    if path is not None:
        return from_path(path, arch=arch)
    return built(backend, arch)


def built(backend: str, arch: str | None) -> Target:
    """The kernel of this checkout (or the installed one), built if need be."""
    wanted = arch or default_arch(backend)
    try:
        extension = ga.load(backend=backend, arch=wanted)
    except (OSError, RuntimeError, ValueError) as error:
        raise TargetError(f"no {backend} kernel for {wanted}: {error}") from error
    return from_extension(extension, label=f"{backend} {wanted}")


def from_path(path: Path, *, arch: str | None = None) -> Target:
    """A shared library, or the artifact folder that holds one."""
    try:
        extension = ga.load(library_in(path))
    except (OSError, RuntimeError, ValueError) as error:
        raise TargetError(f"{path} cannot be loaded: {error}") from error
    if arch is not None and extension.arch != arch:
        raise TargetError(f"{path} is built for {extension.arch}, not {arch}: choose that --arch or leave it out")
    return from_extension(extension, label=str(path))


def from_extension(extension: Any, *, label: str) -> Target:
    """A loaded extension as a target."""
    return Target(
        label=label,
        backend=extension.backend,
        arch=extension.arch,
        device=device_of(extension.backend),
        attend=getattr(extension, OP),
        partials=getattr(extension, f"{OP}_partials"),
        extension=extension,
        facts={"sha256": extension.sha256, "code_digest": extension.code_digest},
    )


def from_callable(name: str, *, backend: str, arch: str | None) -> Target:
    """`module:function` with the signature of the operation, compared with the goldens of `arch`."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise TargetError(f"{name!r} is not of the form module:function")
    try:
        function = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise TargetError(f"{name}: {error}; is its folder on PYTHONPATH?") from error
    return Target(
        label=name,
        backend=backend,
        arch=arch or default_arch(backend),
        device=device_of(backend),
        attend=function,
        partials=getattr(function, "partials", None),
    )


def library_in(path: Path) -> Path:
    """The one shared library of an artifact folder; a file is itself."""
    if not path.is_dir():
        return path
    libraries = sorted(path.glob("*.so"))
    if len(libraries) != 1:
        raise TargetError(f"{path} holds {len(libraries)} shared libraries, not one: name the file with --library")
    return libraries[0]


def device_of(backend: str) -> str:
    """Where the tensors of a backend live."""
    return "cuda" if backend == "cuda" else "cpu"


def default_arch(backend: str) -> str:
    """The GPU's architecture for cuda; sm_70, which the kernel was made for, on the host."""
    if backend != "cuda":
        return "sm_70"
    if not torch.cuda.is_available():
        raise TargetError("no GPU on this machine: use --backend host")
    major, minor = torch.cuda.get_device_capability()
    return {"7": "sm_70", "8": "sm_80"}.get(str(major), f"sm_{major}{minor}")
