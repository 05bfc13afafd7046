"""Identity of a binary, isolated builds, candidate and base."""

from __future__ import annotations

from typing import Any

from artifacts.builds import Targets, base, candidate
from artifacts.errors import ArtifactsError
from artifacts.sides import Binary, Side
from grouped_attention.manifest import Artifact

__all__ = ["Artifact", "ArtifactsError", "Binary", "Side", "Targets", "base", "candidate", "load_extension"]


def load_extension(binary: Binary | Artifact) -> Any:
    """The loaded library of a binary or an artifact (see `grouped_attention.load`)."""
    import grouped_attention  # imports torch: only who loads a kernel pays for it

    return grouped_attention.load(binary.library)
