"""Where the checkout and the store of built libraries are."""

from __future__ import annotations

import os
from pathlib import Path

from grouped_attention.build import default_store

PRODUCT = "kernels"


def root() -> Path:
    """The checkout that this instrument was started from."""
    return Path(__file__).resolve().parents[1]


def store() -> Path:
    """artifacts/ below $KERNELGATE_HOME when that is set, else the product's own default store."""
    home = os.environ.get("KERNELGATE_HOME")
    return Path(home).absolute() / "artifacts" if home else default_store()
