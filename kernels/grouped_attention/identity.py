"""What makes two libraries the same: a digest of what goes into a build, one of the code that comes out.

`build_digest` names a build before it runs: sources, flags, toolchain, architecture and variant.
`code_digest` names what was compiled: for a GPU library the cubin's deciding sections and the host code
around it; for a CPU library its sources, flags and compiler. Neither depends on the folder of the build.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grouped_attention import cubin
from grouped_attention.manifest import canonical, sha256_bytes

RECIPE = 2  # raise it when build.py compiles the same sources differently

_SKIPPED_DIRS = frozenset({"grouped_attention", "__pycache__", "build", "dist"})
_SKIPPED_NAMES = frozenset({"pyproject.toml"})
_SKIPPED_SUFFIXES = frozenset({".pyc", ".md", ".so", ".orig", ".rej"})
# Modules that no call goes through: a change of them changes no answer.
_BUILDING = frozenset(
    {"build.py", "collect.py", "cubin.py", "cubin_info.py", "identity.py", "manifest.py", "recipe.py"}
    | {"store_files.py", "toolchain.py"}
)
_PATH_OPTIONS = frozenset({"-o", "-MF", "-MT", "-MQ"})
# Third-party headers lie elsewhere on every machine; their versions stand in the manifest.
_ELSEWHERE = re.compile(r"(?<![\w>.])/(?:[^\s/=:,]+/)+")


class IdentityError(ValueError):
    """Nothing to give an identity to: no sources, or a build without a record of what it compiled."""


@dataclass(frozen=True, kw_only=True)
class CompileRecord:
    """What ninja remembers of a build: the compiler's command lines, and what each object was made from."""

    commands: tuple[str, ...]
    inputs: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class Roots:
    """Folders whose place must not matter: `source` (the kernels folder compiled), others by placeholder."""

    source: Path
    others: Mapping[str, Path]


def read_sources(source: Path) -> dict[str, bytes]:
    """Relative POSIX path → contents of all files below `source` that a build may read (not Python's)."""
    if not (source / "CMakeLists.txt").is_file():
        raise IdentityError(
            f"{source}: no CMakeLists.txt there; pass the kernels/ folder of a checkout or an export"
        )
    return {path.relative_to(source).as_posix(): path.read_bytes() for path in sorted(_walk(source))}


def source_digest(sources: Mapping[str, bytes]) -> str:
    """One digest of all sources: names and contents."""
    return sha256_bytes(canonical({name: sha256_bytes(data) for name, data in sources.items()}))


def build_digest(
    *,
    source_digest: str,
    backend: str,
    arch: str,
    variant: str,
    flags: Sequence[str],
    toolchain: Mapping[str, str],
) -> str:
    """The name of a build's directory."""
    return sha256_bytes(
        canonical(
            {
                "recipe": RECIPE,
                "source_digest": source_digest,
                "backend": backend,
                "arch": arch,
                "variant": variant,
                "flags": list(flags),
                "toolchain": dict(toolchain),
            }
        )
    )


def code_digest(
    *, record: CompileRecord, roots: Roots, cubins: Iterable[bytes] = (), compiler: str | None = None
) -> str:
    """Digest of compiled code: device sections, the host sources really read, their flags, and `compiler`.

    `compiler` is given for CPU libraries, where the compiler's output is what is tested. IdentityError when
    the record names no input below `roots.source`.
    """
    inputs = _host_inputs(record.inputs, roots.source)
    if not inputs:
        raise IdentityError(
            "the build recorded no source file for any object: a compiler that writes depfiles is needed"
        )
    return sha256_bytes(
        canonical(
            {
                "cubins": sorted(cubin.digest(data) for data in cubins),
                "sources": inputs,
                "commands": sorted(normalise(command, roots) for command in record.commands),
                "compiler": compiler,
            }
        )
    )


def binding_digest(package: Path = Path(__file__).parent) -> str:
    """Digest of the Python through which calls reach a library: of a grouped_attention folder, else this."""
    modules = {path.name: sha256_bytes(path.read_bytes()) for path in package.glob("*.py")}
    return sha256_bytes(
        canonical({name: digest for name, digest in modules.items() if name not in _BUILDING})
    )


def parse_record(commands_text: str, deps_text: str, compiler: Path, build_dir: Path) -> CompileRecord:
    """From `ninja -t commands` and `ninja -t deps`: what `compiler` did, and every object's inputs."""
    return CompileRecord(
        commands=tuple(_compiler_commands(commands_text, str(compiler))),
        inputs=tuple(sorted(set(_object_inputs(deps_text, build_dir)))),
    )


def normalise(command: str, roots: Roots) -> str:
    """A command line without the compiler's own path and output names, and with folders as placeholders."""
    words = shlex.split(command)[1:]
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word not in _PATH_OPTIONS and not word.startswith("-ffile-prefix-map="):
            kept.append(_placeholders(word, roots))
        skip = word in _PATH_OPTIONS
    return " ".join(kept)


def _walk(folder: Path) -> Iterable[Path]:
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if path.name not in _SKIPPED_DIRS and not path.name.endswith(".egg-info"):
                yield from _walk(path)
        elif path.is_file() and path.name not in _SKIPPED_NAMES and path.suffix not in _SKIPPED_SUFFIXES:
            yield path


def _host_inputs(inputs: Iterable[Path], source: Path) -> dict[str, str]:
    root = source.resolve()
    resolved = {path.resolve() for path in inputs}
    return {
        path.relative_to(root).as_posix(): sha256_bytes(path.read_bytes())
        for path in sorted(resolved)
        if path.is_relative_to(root)
    }


def _compiler_commands(text: str, compiler: str) -> Iterable[str]:
    for line in text.splitlines():
        # Link lines of CMake look like ": && g++ … && :".
        for part in line.split("&&"):
            if part.strip() and shlex.split(part)[:1] == [compiler]:
                yield part.strip()


def _object_inputs(text: str, build_dir: Path) -> Iterable[Path]:
    is_object = False
    for line in text.splitlines():
        if line and not line[0].isspace():
            # Only compiled objects count: a cubin's own sources are judged by the cubin.
            is_object = line.split(":", 1)[0].endswith(".o")
        elif line.strip() and is_object:
            yield build_dir / line.strip()


def _placeholders(word: str, roots: Roots) -> str:
    named = {"source": roots.source, **roots.others}
    # Longest first: one root may lie inside another.
    for name, folder in sorted(named.items(), key=lambda item: -len(str(item[1]))):
        word = word.replace(str(folder), f"<{name}>")
    return _ELSEWHERE.sub("<elsewhere>/", word)
