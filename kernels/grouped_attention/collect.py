"""What a finished build is: the identity of its library, read from what ninja remembers, and its manifest."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from grouped_attention import identity, toolchain
from grouped_attention.manifest import Manifest, sha256_file
from grouped_attention.recipe import BuildError, Plan


@dataclass(frozen=True, kw_only=True)
class Built:
    """Folders of a build. `target` names the library to ninja where the build made others too."""

    source: Path
    build: Path
    prefix: Path
    target: str | None = None


def manifest_of(wanted: Plan, built: Built, folder: Path, version: int | None) -> Manifest:
    """The manifest of the library and the files beside it in `folder`; BuildError when it can't be named."""
    files = {path.name: sha256_file(path) for path in sorted(folder.iterdir())}
    library = folder / f"{wanted.stem}.so"
    return Manifest(
        backend=wanted.backend, arch=wanted.arch, variant=wanted.variant,
        library=library.name, sha256=files[library.name], code_digest=code_digest(wanted, built, library),
        source_digest=wanted.source_digest, flags=wanted.flags, toolchain=wanted.toolchain,
        digest=wanted.digest, files=files, precision_version=version, revision=wanted.revision,
    )  # fmt: skip


def code_digest(wanted: Plan, built: Built, library: Path) -> str:
    """The code digest of a library whose cubins lie beside it."""
    cubins = [path.read_bytes() for path in sorted(library.parent.glob("*.cubin"))]
    if wanted.backend == "cuda" and not cubins:
        raise BuildError("a cuda build must install its .cubin")
    content = library.read_bytes()
    if any(data not in content for data in cubins):
        raise BuildError("the installed cubin is not the one inside the library")
    roots = identity.Roots(source=built.source, others={"build": built.build, "prefix": built.prefix})
    compiler = toolchain.compiler_identity(wanted.toolchain) if wanted.backend == "host" else None
    return identity.code_digest(
        record=_compile_record(wanted, built), roots=roots, cubins=cubins, compiler=compiler
    )


def precision_version(library: Path) -> tuple[int | None, str]:
    """What the library answers, None when it can't be read, and a line for the log."""
    if b"precision_version" not in library.read_bytes():
        return None, "precision_version: not exported"  # no need to load it
    # In a process of its own: a library that was just compiled may crash whoever loads it.
    script = "import sys, tvm_ffi; print(int(tvm_ffi.load_module(sys.argv[1]).precision_version()))"
    done = subprocess.run(
        [sys.executable, "-c", script, str(library)], capture_output=True, text=True, timeout=120, check=False
    )
    answer = done.stdout.strip()
    is_number = done.returncode == 0 and answer.lstrip("-").isdigit()
    line = f"precision_version: {answer or 'not readable: ' + done.stderr.strip()[-400:]}"
    return (int(answer) if is_number else None), line


def _compile_record(wanted: Plan, built: Built) -> identity.CompileRecord:
    targets = [] if built.target is None else [built.target]
    commands = _ask_ninja(wanted, built.build, "commands", *targets)
    inputs = _ask_ninja(wanted, built.build, "inputs", *targets).split() if targets else []
    deps = _ask_ninja(wanted, built.build, "deps", *(name for name in inputs if name.endswith(".o")))
    return identity.parse_record(commands, deps, wanted.tools.cxx, built.build)


def _ask_ninja(wanted: Plan, build: Path, subtool: str, *targets: str) -> str:
    done = subprocess.run(
        [str(wanted.tools.ninja), "-C", str(build), "-t", subtool, *targets],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise BuildError(f"ninja -t {subtool} gave exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout
