"""Failures that a person can act on: each has a code (`python -m evidence explain CODE`) and a sentence."""

from __future__ import annotations


class ArtifactsError(RuntimeError):
    """Something could not be resolved, exported or built."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
