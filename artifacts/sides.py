"""A side of a comparison: all libraries of one revision, folder or file, and where they come from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from artifacts import claims, dirty, foreign, git
from artifacts.errors import ArtifactsError
from artifacts.places import root, store
from grouped_attention.identity import binding_digest
from grouped_attention.manifest import (
    NAME,
    Artifact,
    ManifestError,
    open_artifact,
    sha256_file,
    verify_library,
)

SCHEMA = 1
SET_NAME = "built.json"
ACCEPTED = ", bits changed: accepted because "


@dataclass(frozen=True, kw_only=True)
class Binary:
    """One library. `directory` is None, and the digests too, when it came without a manifest."""

    library: Path
    backend: str
    arch: str
    sha256: str
    directory: Path | None = None
    code_digest: str | None = None
    source_digest: str | None = None
    toolchain: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A library that could not be built."""

    backend: str
    arch: str
    text: str
    code: str = "build-failed"
    log: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Side:
    """`revision` names the commit that its sources come from; `dirty` lists the files that differ from it.

    `binding` is the digest of the Python layer that belongs to it: its sources', else this checkout's.
    `missing` is (code, text) when there is nothing to compare with.
    """

    origin: str
    revision: str | None = None
    dirty: tuple[str, ...] = ()
    binding: str = field(default_factory=binding_digest)
    binaries: tuple[Binary, ...] = ()
    failures: tuple[Failure, ...] = ()
    missing: tuple[str, str] | None = None


def of_artifact(artifact: Artifact) -> Binary:
    """The binary of an artifact folder."""
    manifest = artifact.manifest
    return Binary(
        library=artifact.library,
        directory=artifact.directory,
        backend=manifest.backend,
        arch=manifest.arch,
        sha256=manifest.sha256,
        code_digest=manifest.code_digest,
        source_digest=manifest.source_digest,
        toolchain=manifest.toolchain,
    )


def from_path(path: Path) -> Side:
    """A side from an artifact folder, a folder of several (built.json), or a library; else ArtifactsError."""
    if not any(place.is_file() for place in (path, path / SET_NAME, path / NAME)):
        what = f"holds no {SET_NAME} or {NAME}" if path.is_dir() else "no such folder or library"
        raise ArtifactsError("no-artifact", f"{path}: {what}; python -m artifacts build --out DIR makes one")
    try:
        if path.is_file():
            return _from_library(path)
        if (path / SET_NAME).is_file():
            return _read_set(path)
        artifact = open_artifact(path)
    except ManifestError as error:
        raise ArtifactsError("artifact-refused", f"{error}{remedy(path)}") from error
    return _from_artifact(path, artifact)


def remedy(path: Path) -> str:
    """The command that deletes a damaged folder of the store, for the end of a message; nothing elsewhere."""
    folder = (path.parent if path.suffix == ".so" else path).absolute()
    return f" (python -m artifacts clean {folder.name[:12]})" if folder.parent == store() else ""


def to_json(side: Side) -> dict[str, Any]:
    """The JSON object that `python -m evidence verdict` reads."""
    missing = None if side.missing is None else {"code": side.missing[0], "text": side.missing[1]}
    return {
        "schema": SCHEMA,
        "origin": side.origin,
        "revision": side.revision,
        "dirty": list(side.dirty),
        "binding": side.binding,
        "accepted": _accepted(side.revision),
        "missing": missing,
        "artifacts": [_binary_json(binary, side) for binary in side.binaries],
        "failed": [
            {
                "backend": f.backend,
                "arch": f.arch,
                "code": f.code,
                "text": f.text,
                "log": None if f.log is None else str(f.log),
            }
            for f in side.failures
        ],
    }


def _accepted(revision: str | None) -> list[str]:
    """Headings of the changelog that `regression replay --accept` wrote with renewed goldens."""
    lines = git.text(root(), revision, "CHANGELOG.md").splitlines() if revision else []
    return [
        line.removeprefix("### ").strip() for line in lines if line.startswith("### ") and ACCEPTED in line
    ]


def copy_set(side: Side, folder: Path) -> None:
    """Copy all artifacts of a side into `folder`, one subfolder each, with built.json; never overwrites."""
    if folder.exists() and any(folder.iterdir()):
        raise ArtifactsError("not-empty", f"{folder} is not empty: choose a new folder")
    for binary in side.binaries:
        if binary.directory is None:
            raise ArtifactsError(
                "no-manifest", f"{binary.library} has no manifest and can't be copied as an artifact"
            )
        shutil.copytree(binary.directory, folder / f"{binary.backend}-{binary.arch}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SET_NAME).write_text(json.dumps(to_json(side), indent=1) + "\n")


def _binary_json(binary: Binary, side: Side) -> dict[str, Any]:
    return {
        "backend": binary.backend,
        "arch": binary.arch,
        "sha256": binary.sha256,
        "code_digest": binary.code_digest,
        "source_digest": binary.source_digest,
        "revision": side.revision,
        "dirty": bool(side.dirty),
        "toolchain": dict(binary.toolchain),
        "library": str(binary.library),
        "directory": None if binary.directory is None else str(binary.directory),
    }


def _read_set(folder: Path) -> Side:
    stated = _stated(folder)
    binaries = tuple(
        of_artifact(open_artifact(path.parent)) for path in sorted(folder.glob("*/manifest.json"))
    )
    if {(binary.backend, binary.arch): binary.sha256 for binary in binaries} != stated.hashes:
        raise ArtifactsError(
            "artifact-refused", f"{folder / SET_NAME}: lists other libraries than the folder holds"
        )
    return _named(stated, Side(origin=str(folder), binaries=binaries))


@dataclass(frozen=True, kw_only=True)
class _Stated:
    """What a set's built.json says."""

    revision: str | None
    dirty: tuple[str, ...]
    binding: str
    hashes: Mapping[tuple[str, str], str]


def _stated(folder: Path) -> _Stated:
    where = folder / SET_NAME
    try:
        value = json.loads(where.read_bytes())
        return _Stated(
            revision=value["revision"],
            dirty=tuple(value["dirty"]),
            binding=value.get("binding") or binding_digest(),
            hashes={(item["backend"], item["arch"]): item["sha256"] for item in value["artifacts"]},
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtifactsError(
            "artifact-refused", f"{where}: unreadable ({error!r}); export it again"
        ) from error


def _named(stated: _Stated, side: Side) -> Side:
    """A side as its set names it; the instrument's own dirt counts too."""
    doubts = claims.doubts(stated.revision)
    return replace(
        side,
        revision=stated.revision,
        dirty=tuple(dict.fromkeys((*stated.dirty, *doubts))),
        binding=stated.binding,
    )


def _from_artifact(path: Path, artifact: Artifact) -> Side:
    binary = of_artifact(artifact)
    side = Side(origin=str(path), binaries=(binary,))
    beside = artifact.directory.absolute().parent
    if (beside / SET_NAME).is_file():
        stated = _stated(beside)
        if stated.hashes.get((binary.backend, binary.arch)) == binary.sha256:
            return _named(stated, side)
    revision = claims.revision_of(artifact.manifest.source_digest, artifact.manifest.revision)
    return replace(side, revision=revision, dirty=claims.doubts(revision))


def _from_library(path: Path) -> Side:
    """A library with its manifest beside it is that artifact; without one, its hash is all that names it."""
    if verify_library(path) is not None:
        return _from_artifact(path, open_artifact(path.parent))
    backend, arch = foreign.target(path)
    binary = Binary(library=path, backend=backend, arch=arch, sha256=sha256_file(path), toolchain={})
    # Its hash names it, so a revision isn't missed; the instrument's dirt counts all the same.
    return Side(origin=str(path), dirty=dirty.of_instrument(), binaries=(binary,))
