"""Where the checkout and the store of built libraries are."""

from __future__ import annotations

from pathlib import Path

from grouped_attention.build import default_store

PRODUCT = "kernels"


def root() -> Path:
    """The checkout that this instrument was started from."""
    return Path(__file__).resolve().parents[1]


def store() -> Path:
    """The product's own: $GROUPED_ATTENTION_STORE, else artifacts/ in $KERNELGATE_HOME or .kernelgate."""
    return default_store()
