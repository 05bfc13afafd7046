"""Distance to the FP64 oracle."""

from __future__ import annotations

import numpy as np
from fixtures import oracle

from regression.bits import Array
from regression.results import Accuracy


def accuracy(out: Array, reference: Array) -> Accuracy:
    """Errors of an fp16 output [R, H, D] against the oracle's fp64 one."""
    wrong = ~np.isfinite(out) & np.isfinite(reference)
    return Accuracy(
        relative_l2=float(oracle.relative_l2(out, reference)),
        floor=float(oracle.floor(reference)),
        budget=float(oracle.budget(reference)),
        disagreements=int(oracle.disagreements(out, reference)),
        not_finite=int(wrong.sum()),
    )
