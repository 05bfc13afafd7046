"""Where records lie."""

from __future__ import annotations

import hashlib
import json
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


def inputs_hash() -> str:
    """The fixtures' manifest hash of this checkout, as records carry it; OSError or ValueError if none."""
    value = json.loads((root() / "fixtures" / "manifest.json").read_bytes())
    return hashlib.sha256(json.dumps(value, indent=1, sort_keys=True).encode()).hexdigest()
