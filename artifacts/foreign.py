"""Asks a library what it is, in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from artifacts.errors import ArtifactsError
from grouped_attention.load import ARCHITECTURES, BACKENDS

TIMEOUT_S = 120
ELF = b"\x7fELF"
# Importing torch takes seconds, more so beside a sanitizer: only a library that needs it gets it.
_ASK = """
import sys
sys.modules["torch"] = None
import tvm_ffi
try:
    library = tvm_ffi.load_module(sys.argv[1])
except Exception:
    del sys.modules["torch"]
    import torch
    library = tvm_ffi.load_module(sys.argv[1])
print("\\ndescribe:", " ".join(library.describe().split()))
"""
# It may print while it is loaded, and when it goes.
_ANSWER = re.compile(r"^describe: (.*)$", re.M)


def target(library: Path) -> tuple[str, str]:
    """(backend, arch) as the library's `describe` gives them; ArtifactsError "library-refused" otherwise."""
    value = describe(library)
    backend, arch = value.get("backend"), value.get("arch")
    if backend not in BACKENDS or arch not in ARCHITECTURES:
        # It may be any text, so it is not repeated.
        there = f"{' or '.join(BACKENDS)}; {', '.join(ARCHITECTURES)}"
        text = f"{library}: describe() names another backend or architecture than {there}"
        raise ArtifactsError("library-refused", text)
    return backend, arch


def describe(library: Path) -> dict[str, Any]:
    """The JSON object that the library's `describe` returns; ArtifactsError "library-refused" otherwise."""
    with library.open("rb") as stream:
        if stream.read(len(ELF)) != ELF:
            raise ArtifactsError("library-refused", f"{library} is not a shared library: give a .so")
    command = [sys.executable, "-c", _ASK, str(library.absolute())]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ArtifactsError("library-refused", f"{library}: didn't load within {TIMEOUT_S} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ArtifactsError("library-refused", f"{library}: can't be asked what it is ({last})")
    try:
        value = json.loads(_ANSWER.findall(done.stdout)[-1])
    except (ValueError, IndexError):
        value = None
    if not isinstance(value, dict):
        raise ArtifactsError("library-refused", f"{library}: describe() is not understood")
    return value
