"""What one build is made of: sources, variant flags and tools, and the cmake command line that they give."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from grouped_attention import identity, toolchain

BACKENDS = ("host", "cuda")
VARIANTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    # name: (CMAKE_BUILD_TYPE, extra compiler and linker flags)
    "release": ("Release", ()),
    "debug": ("Debug", ()),
    "address": (
        "RelWithDebInfo",
        ("-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-fno-sanitize-recover=undefined"),
    ),
    "thread": ("RelWithDebInfo", ("-fsanitize=thread", "-fno-omit-frame-pointer")),
}


class BuildError(RuntimeError):
    """A build that failed; `log` (kept) holds all output, the message its tail."""

    def __init__(self, message: str, log: Path | None = None) -> None:
        super().__init__(message if log is None else f"{message}\nfull log: {log}")
        self.log = log


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that goes into one build, read once: what is hashed is what is compiled."""

    sources: Mapping[str, bytes]
    source_digest: str
    backend: str
    arch: str
    variant: str
    flags: tuple[str, ...]
    tools: toolchain.Tools
    toolchain: Mapping[str, str]
    digest: str
    revision: str | None = None

    @property
    def stem(self) -> str:
        """File name of the library without its suffix."""
        return f"grouped_attention-{self.backend}-{self.arch}"


def plan(
    source: Path,
    *,
    backend: str,
    arch: str,
    variant: str = "release",
    revision: str | None = None,
    tools: toolchain.Tools | None = None,
) -> Plan:
    """Read the sources, ask the tools for their versions, compile nothing; BuildError when that fails.

    `tools` are those of a build that another program runs; without them they are looked for.
    """
    _check_target(backend, variant)
    try:
        sources, used = identity.read_sources(source), tools or toolchain.find()
        versions = toolchain.versions(used, backend)
    except (identity.IdentityError, toolchain.ToolError, OSError) as error:
        raise BuildError(str(error)) from error
    named = _Named(
        source_digest=identity.source_digest(sources),
        backend=backend,
        arch=arch,
        variant=variant,
        flags=_flags(variant),
        toolchain=versions,
    )
    return Plan(
        **named, sources=sources, tools=used, digest=identity.build_digest(**named), revision=revision
    )


class _Named(TypedDict):
    """What a build's digest is made of."""

    source_digest: str
    backend: str
    arch: str
    variant: str
    flags: tuple[str, ...]
    toolchain: Mapping[str, str]


def _check_target(backend: str, variant: str) -> None:
    if backend not in BACKENDS or variant not in VARIANTS:
        raise BuildError(
            f"backend {backend!r} or variant {variant!r} unknown; "
            f"backends {', '.join(BACKENDS)}; variants {', '.join(VARIANTS)}"
        )


def _flags(variant: str) -> tuple[str, ...]:
    build_type, extra = VARIANTS[variant]
    return (f"-DCMAKE_BUILD_TYPE={build_type}", *extra)


def configure_arguments(wanted: Plan, work: Path) -> list[str]:
    build_type, *extra = wanted.flags
    flags = " ".join([*extra, *_prefix_maps(work)])
    return [
        "-S", str(work / "source"), "-B", str(work / "build"), "-G", "Ninja", "-Wno-unused-cli",
        build_type,
        f"-DGROUPED_TARGETS={wanted.backend}:{wanted.arch}",
        f"-DCMAKE_INSTALL_PREFIX={work / 'prefix'}",
        f"-DCMAKE_MAKE_PROGRAM={wanted.tools.ninja}",
        f"-DCMAKE_CXX_COMPILER={wanted.tools.cxx}",
        f"-DCMAKE_CXX_FLAGS={flags}",
        f"-DPython_EXECUTABLE={sys.executable}", f"-DPython3_EXECUTABLE={sys.executable}",
        "-DCMAKE_SKIP_RPATH=ON",
    ]  # fmt: skip


def _prefix_maps(work: Path) -> list[str]:
    return [shlex.quote(f"-ffile-prefix-map={folder}={name}") for name, folder in roots(work).items()]


def roots(work: Path) -> dict[str, Path]:
    return {
        "kernels": work / "source",
        "build": work / "build",
        "prefix": work / "prefix",
        "python": Path(sys.prefix),
    }
