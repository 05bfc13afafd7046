"""A slowdown that is known: on the host, a wrapper that spins for a fraction of what the call took."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from artifacts import ArtifactsError
from benchmarks.abba.subjects import Contender


def slowed(contender: Contender, fraction: float) -> Contender:
    """The same on a CPU, slower by `fraction`. On a GPU a patch does it: `fixtures/faults/spin-*`."""
    if contender.subject.backend != "host":
        raise ArtifactsError(
            "usage", "--plant is for the host; on a GPU pass --slowed FOLDER, built with a spin patch"
        )
    attend = contender.attend

    def slower(*arguments: Any, **options: Any) -> Any:
        start = time.process_time_ns()
        result = attend(*arguments, **options)
        now = time.process_time_ns()
        until = now + fraction * (now - start)
        while time.process_time_ns() < until:
            pass
        return result

    subject = dataclasses.replace(
        contender.subject, sha256=f"{contender.subject.sha256}+{fraction}", code_digest=None
    )
    label = f"{contender.label}, slowed by {fraction:.2%}"
    return dataclasses.replace(contender, label=label, subject=subject, attend=slower)
