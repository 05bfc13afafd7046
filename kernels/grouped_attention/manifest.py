"""The manifest beside a library: what it was built from, and the hashes that tie it to its bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SCHEMA = 1
NAME = "manifest.json"
LOG_NAME = "build.log"


class ManifestError(RuntimeError):
    """A manifest that can't be read or files that don't match it; names the file and says what to do."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Everything that is known about one library. Digests are lower-case hex SHA-256."""

    backend: str
    arch: str
    variant: str
    library: str
    sha256: str
    code_digest: str
    source_digest: str
    flags: tuple[str, ...]
    toolchain: Mapping[str, str]
    digest: str
    files: Mapping[str, str]
    precision_version: int | None = None
    revision: str | None = None
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """One built library with its manifest, in a directory of its own."""

    directory: Path
    library: Path
    manifest: Manifest


def canonical(value: object) -> bytes:
    """The one JSON spelling of a value that is hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def sha256_bytes(data: bytes) -> str:
    """SHA-256 of bytes, as lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file, as lower-case hex; OSError if it can't be read."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def to_json(manifest: Manifest) -> dict[str, Any]:
    """The JSON object of a manifest; `seal` hashes all its other fields."""
    body = asdict(manifest)
    body["flags"] = list(manifest.flags)
    return {**body, "seal": sha256_bytes(canonical(body))}


def dumps(manifest: Manifest) -> str:
    """The text of manifest.json."""
    return json.dumps(to_json(manifest), indent=2, sort_keys=True) + "\n"


def parse(value: object, where: str) -> Manifest:
    """A manifest from its JSON value; ManifestError names `where` and the field that is wrong."""
    if not isinstance(value, dict):
        raise ManifestError(f"{where}: not a JSON object")
    if value.get("schema") != SCHEMA:
        raise ManifestError(
            f"{where}: schema {value.get('schema')!r}, this version reads {SCHEMA}; build again"
        )
    body = dict(value)
    seal = body.pop("seal", None)
    _check_fields(body, where)
    if seal != sha256_bytes(canonical(body)):
        raise ManifestError(
            f"{where}: edited after it was written (its seal doesn't match); build again elsewhere"
        )
    return Manifest(**{**body, "flags": tuple(body["flags"])})


def read(path: Path) -> Manifest:
    """Read and check manifest.json (not the files that it names)."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ManifestError(
            f"{path}: unreadable manifest ({error}); delete its folder and build again"
        ) from error
    return parse(value, str(path))


def open_artifact(directory: Path) -> Artifact:
    """The artifact in `directory`, every file checked; ManifestError names the first that differs."""
    manifest = read(directory / NAME)
    for name, expected in sorted(manifest.files.items()):
        _check_file(directory / name, expected)
    return Artifact(directory=directory, library=directory / manifest.library, manifest=manifest)


def verify_library(path: Path) -> Manifest | None:
    """The manifest beside a library whose bytes match it; None when there is none (a foreign library)."""
    beside = path.parent / NAME
    if not beside.exists():
        return None
    manifest = read(beside)
    if manifest.library != path.name:
        raise ManifestError(
            f"{beside}: describes {manifest.library}, not {path.name}; keep one library per folder"
        )
    _check_file(path, manifest.sha256)
    return manifest


def _check_file(path: Path, expected: str) -> None:
    advice = f"delete {path.parent} and build again"
    try:
        actual = sha256_file(path)
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror or error}; {advice}") from error
    if actual != expected:
        raise ManifestError(
            f"{path}: its bytes don't match manifest.json ({actual[:16]}…, expected {expected[:16]}…): "
            f"changed after the build; {advice}"
        )


def _check_fields(body: Mapping[str, Any], where: str) -> None:
    known = set(Manifest.__dataclass_fields__)
    if set(body) != known:
        raise ManifestError(f"{where}: missing or unknown fields {sorted(set(body) ^ known)}; build again")
    for name in ("backend", "arch", "variant", "library", "sha256", "code_digest", "source_digest", "digest"):
        _require(isinstance(body[name], str) and bool(body[name]), where, name)
    _require(_is_strings(body["flags"]), where, "flags")
    for name in ("toolchain", "files"):
        value = body[name]
        _require(isinstance(value, dict) and _is_strings(list(value.values())), where, name)
    _require(all(_is_plain_name(name) for name in (*body["files"], body["library"])), where, "files")
    _require(body["files"].get(body["library"]) == body["sha256"], where, "sha256")
    version, revision = body["precision_version"], body["revision"]
    _require(
        version is None or (isinstance(version, int) and not isinstance(version, bool)),
        where,
        "precision_version",
    )
    _require(revision is None or isinstance(revision, str), where, "revision")


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_plain_name(name: str) -> bool:
    # A manifest may come from another machine: it must not point out of its own folder.
    return bool(name) and name not in {".", ".."} and not set(name) & {"/", "\\", "\0"}


def _require(condition: bool, where: str, field: str) -> None:
    if not condition:
        raise ManifestError(f"{where}: field {field!r} is not valid; build again")
