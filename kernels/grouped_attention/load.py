"""Finds, checks and loads a library."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
import tvm_ffi

from grouped_attention import build, manifest
from grouped_attention.extension import ATTENTION, Extension
from grouped_attention.manifest import Manifest
from grouped_attention.workspace import Pool

BACKENDS = ("host", "cuda")
ARCHITECTURES = ("sm_70", "sm_80", "sm_90")
OLDEST_PRECISION_VERSION = 3
PACKAGED = Path(__file__).resolve().parent / "lib"  # of a wheel: each library in a folder of its own
# The architecture that the kernel was made for: the model that runs where nothing else is asked for.
DEFAULT_HOST_ARCH = "sm_70"
_REQUIRED = ("precision_version", "describe", ATTENTION, f"{ATTENTION}_partials")
_OPTIONAL = ("prepare", "tensor_core_dot", "set_num_threads", "cpu_implementation")


class SettingError(RuntimeError):
    """The library is in order, but an environment variable asks it for what it can't do here."""


@dataclass(frozen=True, kw_only=True)
class _About:
    """What a library's describe() says."""

    backend: str
    arch: str
    splits: int
    instances: tuple[tuple[int, int], ...]


def load(
    path: str | os.PathLike[str] | None = None, *, backend: str | None = None, arch: str | None = None
) -> Extension:
    """Load one library: the file `path`, or the one for a backend and architecture, built if need be.

    Without arguments: the CUDA library of the GPU at hand, else the CPU one that models sm_70.
    FileNotFoundError for a missing file; RuntimeError for a library that doesn't match its manifest, that is
    too old ("rebuild"), or that can't be built; ValueError for an unknown backend or architecture;
    SettingError (a RuntimeError) when $GROUPED_ATTENTION_CPU names code that can't run here.
    """
    if path is not None:
        return _checked(_open(Path(path)), backend, arch)
    backend = backend or _best_backend()
    arch = arch or (_gpu_arch() if backend == "cuda" else DEFAULT_HOST_ARCH)
    if backend not in BACKENDS or arch not in ARCHITECTURES:
        raise ValueError(f"no library for {backend!r}, {arch!r}: host or cuda; sm_70, sm_80 or sm_90")
    return _checked(_open(_find(backend, arch)), backend, arch)


def _best_backend() -> str:
    return "cuda" if torch.cuda.is_available() and arch_of_gpu() is not None else "host"


def _gpu_arch() -> str:
    arch = arch_of_gpu() if torch.cuda.is_available() else None
    if arch is None:
        raise RuntimeError("no GPU that this kernel runs on: pass arch=, or backend='host'")
    return arch


def arch_of_gpu() -> str | None:
    """The architecture whose library the current GPU runs, if there is one."""
    major, minor = torch.cuda.get_device_capability()
    if (major, minor) == (7, 0):
        return "sm_70"
    # A cubin runs on later minor versions of its major one.
    return {8: "sm_80", 9: "sm_90"}.get(major)


def _find(backend: str, arch: str) -> Path:
    packaged = PACKAGED / f"{backend}-{arch}" / f"grouped_attention-{backend}-{arch}.so"
    if packaged.is_file():
        return packaged
    source = Path(__file__).resolve().parents[1]
    if not (source / "CMakeLists.txt").is_file():
        raise RuntimeError(
            f"this installation holds no library for {backend}, {arch}, and no sources to build it from: "
            "install a wheel that has it, or load from a checkout"
        )
    return build.build(source, backend=backend, arch=arch).library


def _open(path: Path) -> Extension:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such library")
    path = path.resolve()
    known = manifest.verify_library(path)
    module = tvm_ffi.load_module(str(path))
    version = _precision_version(path, module)
    functions = {name: module.get_function(name) for name in (*_REQUIRED, *_OPTIONAL) if _has(module, name)}
    if missing := [name for name in _REQUIRED if name not in functions]:
        raise RuntimeError(f"{path}: does not export {', '.join(missing)}: rebuild it")
    about = _about(path, str(functions["describe"]()))
    _check_manifest(path, known, about, version)
    _check_setting(functions)
    return Extension(
        library=path,
        backend=about.backend,
        arch=about.arch,
        precision_version=version,
        splits=about.splits,
        instances=about.instances,
        sha256=known.sha256 if known else manifest.sha256_file(path),
        code_digest=known.code_digest if known else None,
        functions=MappingProxyType(functions),
        pool=Pool(splits=about.splits, prepare=functions.get("prepare")),
    )


def _has(module: Any, name: str) -> bool:
    return bool(module.implements_function(name))


def _precision_version(path: Path, module: Any) -> int:
    version = int(module.get_function("precision_version")()) if _has(module, "precision_version") else None
    if version is None or version < OLDEST_PRECISION_VERSION:
        found = "no precision_version" if version is None else f"precision_version {version}"
        raise RuntimeError(
            f"{path}: {found}, but at least {OLDEST_PRECISION_VERSION} is needed: a stale library, rebuild it"
        )
    return version


def _about(path: Path, text: str) -> _About:
    try:
        said = json.loads(text)
        about = _About(
            backend=str(said["backend"]),
            arch=str(said["arch"]),
            splits=int(said["splits"]),
            instances=tuple((int(heads), int(head_dim)) for heads, head_dim in said["instances"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RuntimeError(f"{path}: describe() gave {text[:200]!r} ({error!r}): rebuild it") from error
    if about.backend not in BACKENDS:
        raise RuntimeError(f"{path}: is for {about.backend!r}, this package runs {' and '.join(BACKENDS)}")
    return about


def _check_manifest(path: Path, known: Manifest | None, about: _About, version: int) -> None:
    if known is None:
        return
    said = (known.backend, known.arch, known.precision_version)
    found = (about.backend, about.arch, version)
    if said != found:
        raise RuntimeError(f"{path}: is {found}, its manifest says {said}: rebuild it")


def _check_setting(functions: Mapping[str, Any]) -> None:
    """Refuse at once what every call would refuse: it says nothing about the kernel."""
    if "cpu_implementation" in functions:
        try:
            functions["cpu_implementation"]()
        except RuntimeError as error:
            raise SettingError(str(error)) from error


def _checked(extension: Extension, backend: str | None, arch: str | None) -> Extension:
    if backend not in (None, extension.backend) or arch not in (None, extension.arch):
        raise ValueError(
            f"{extension.library}: is for {extension.backend}, {extension.arch}, not for {backend}, {arch}"
        )
    return extension
