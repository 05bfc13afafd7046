"""Where records lie."""

from __future__ import annotations

import os
from pathlib import Path

HOME_VARIABLE = "KERNELGATE_HOME"
RUN_VARIABLE = "KERNELGATE_RUN"


def root() -> Path:
    """The checkout that this instrument was started from."""
    return Path(__file__).resolve().parents[1]


def home() -> Path:
    """$KERNELGATE_HOME, else .kernelgate in the checkout."""
    named = os.environ.get(HOME_VARIABLE)
    return Path(named).absolute() if named else root() / ".kernelgate"


def records() -> Path:
    """The folder of the record store."""
    return home() / "records"
