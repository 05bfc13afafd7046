"""The store, listed and cleaned."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifacts import places
from artifacts.errors import ArtifactsError
from grouped_attention.manifest import Manifest, ManifestError, open_artifact

DIGEST_DIGITS = 64
SHORTEST_PREFIX = 6


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One directory of the store; `problem` says why it must not be used."""

    directory: Path
    manifest: Manifest | None
    problem: str | None


def entries() -> tuple[Entry, ...]:
    """Every artifact of the store, each file checked."""
    return tuple(_entry(path) for path in _directories())


def clean(prefixes: Sequence[str], *, everything: bool = False) -> tuple[Path, ...]:
    """Delete artifacts by the first digits of their digest, or everything; returns what was deleted."""
    doomed = _directories() if everything else [_match(prefix) for prefix in prefixes]
    if everything:
        doomed = [
            *doomed,
            *(path for path in (places.store() / ".failed", places.store() / ".work") if path.exists()),
        ]
    for path in doomed:
        shutil.rmtree(path)
    return tuple(doomed)


def to_json(entry: Entry) -> dict[str, Any]:
    """The JSON object of an entry."""
    manifest = entry.manifest
    return {
        "directory": str(entry.directory),
        "problem": entry.problem,
        "backend": manifest.backend if manifest else None,
        "arch": manifest.arch if manifest else None,
        "variant": manifest.variant if manifest else None,
        "sha256": manifest.sha256 if manifest else None,
        "code_digest": manifest.code_digest if manifest else None,
        "revision": manifest.revision if manifest else None,
    }


def table(found: Sequence[Entry]) -> str:
    """One line per artifact."""
    return "\n".join(_line(entry) for entry in found) or f"{places.store()} holds no artifact"


def _line(entry: Entry) -> str:
    name = entry.directory.name[:12]
    if entry.manifest is None:
        return f"{name}  REFUSED  {entry.problem}"
    manifest = entry.manifest
    revision = (manifest.revision or "-")[:12]
    return (
        f"{name}  {manifest.backend:4} {manifest.arch:5} {manifest.variant:8} "
        f"sha256 {manifest.sha256[:12]}  code {manifest.code_digest[:12]}  revision {revision}"
    )


def _entry(directory: Path) -> Entry:
    try:
        return Entry(directory=directory, manifest=open_artifact(directory).manifest, problem=None)
    except ManifestError as error:
        return Entry(directory=directory, manifest=None, problem=str(error))


def _directories() -> list[Path]:
    store = places.store()
    if not store.is_dir():
        return []
    return [path for path in sorted(store.iterdir()) if path.is_dir() and len(path.name) == DIGEST_DIGITS]


def _match(prefix: str) -> Path:
    found = [path for path in _directories() if path.name.startswith(prefix)]
    if len(prefix) < SHORTEST_PREFIX or len(found) != 1:
        raise ArtifactsError(
            "usage", f"{prefix}: names {len(found)} artifacts; give at least 6 digits of exactly one"
        )
    return found[0]
