"""Builds one library from a kernels/ folder, in isolation, into a directory named by all that went into it.

A directory of the store is complete or absent: it is renamed into place, under a lock, once every byte is on
disk. A cached directory is used as it is, never rebuilt over; one that doesn't match its manifest is refused.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from grouped_attention import collect, identity, recipe, store_files, toolchain
from grouped_attention.manifest import (
    LOG_NAME,
    NAME,
    Artifact,
    ManifestError,
    dumps,
    open_artifact,
)
from grouped_attention.recipe import VARIANTS, BuildError, Plan, plan
from grouped_attention.store_files import default_store

__all__ = ["VARIANTS", "Artifact", "BuildError", "Plan", "build", "default_store", "plan"]

BUILD_TIMEOUT_S = 1800


def build(
    source: Path,
    *,
    backend: str,
    arch: str,
    store: Path | None = None,
    variant: str = "release",
    revision: str | None = None,
) -> Artifact:
    """The library of `source` (a kernels/ folder) for one backend and architecture, from the store if there.

    BuildError: unknown target, missing tool, failed compile. ManifestError: the stored directory was changed.
    """
    wanted = plan(source, backend=backend, arch=arch, variant=variant, revision=revision)
    root = (store or default_store()).absolute()
    directory = root / wanted.digest
    if directory.exists():
        return _open_cached(directory)
    with store_files.locked(root, wanted.digest):
        # Another process may have finished it while this one waited.
        if directory.exists():
            return _open_cached(directory)
        store_files.keep_interrupted_logs(root, wanted.digest)
        return _build_new(wanted, root)


def _open_cached(directory: Path) -> Artifact:
    artifact = open_artifact(directory)
    if artifact.manifest.digest != directory.name:
        raise ManifestError(
            f"{directory / NAME}: belongs to {artifact.manifest.digest[:16]}…; "
            f"delete {directory} and build again"
        )
    return artifact


def _build_new(wanted: Plan, root: Path) -> Artifact:
    (root / ".work").mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f"{wanted.digest[:16]}-", dir=root / ".work"))
    (work / LOG_NAME).touch()
    try:
        finished = _compile_and_collect(wanted, work)
    except (BuildError, identity.IdentityError, OSError) as error:
        log = store_files.keep_log(root, wanted.digest, work / LOG_NAME, "failed")
        shutil.rmtree(work, ignore_errors=True)
        raise BuildError(f"building {wanted.stem} failed: {error}\n{store_files.tail(log)}", log) from error
    except KeyboardInterrupt:
        store_files.keep_interrupted_logs(root, wanted.digest)
        raise
    finished.rename(root / wanted.digest)
    store_files.fsync(root)
    shutil.rmtree(work, ignore_errors=True)
    return open_artifact(root / wanted.digest)


def _compile_and_collect(wanted: Plan, work: Path) -> Path:
    _write_sources(wanted.sources, work / "source")
    _run([str(wanted.tools.cmake), *recipe.configure_arguments(wanted, work)], work)
    _run([str(wanted.tools.cmake), "--build", str(work / "build")], work)
    _run([str(wanted.tools.cmake), "--install", str(work / "build")], work)
    return _collect(wanted, work)


def _write_sources(sources: Mapping[str, bytes], folder: Path) -> None:
    for name, data in sources.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _run(command: Sequence[str], work: Path) -> None:
    with (work / LOG_NAME).open("a") as log:
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=toolchain.environment(), timeout=BUILD_TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise BuildError(f"{command[0]} ran past {BUILD_TIMEOUT_S} s") from error
    if done.returncode != 0:
        raise BuildError(f"{Path(command[0]).name} {command[1]} gave exit status {done.returncode}")


def _collect(wanted: Plan, work: Path) -> Path:
    out = work / "out"
    out.mkdir()
    for path in sorted((work / "prefix").rglob(f"{wanted.stem}.*")):
        shutil.copyfile(path, out / path.name)
    library = out / f"{wanted.stem}.so"
    if not library.is_file():
        raise BuildError(f"the build installed no {library.name}")
    version, line = collect.precision_version(library)
    with (work / LOG_NAME).open("a") as log:
        log.write(f"{line}\n")
    shutil.copyfile(work / LOG_NAME, out / LOG_NAME)
    built = collect.Built(source=work / "source", build=work / "build", prefix=work / "prefix")
    (out / NAME).write_text(dumps(collect.manifest_of(wanted, built, out, version)))
    for path in out.iterdir():
        path.chmod(0o444)
        store_files.fsync(path)
    store_files.fsync(out)
    return out
