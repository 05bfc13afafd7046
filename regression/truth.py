"""Distance to the FP64 oracle."""

from __future__ import annotations

import torch
from torch import Tensor

from fixtures import oracle
from regression.results import Accuracy


def accuracy(out: Tensor, reference: Tensor) -> Accuracy:
    """Errors of an fp16 output [R, H, D] against the oracle's fp64 one."""
    return Accuracy(
        relative_l2=oracle.relative_l2(out, reference),
        floor=oracle.floor(reference),
        budget=oracle.budget(reference),
        disagreements=oracle.disagreements(out, reference),
        not_finite=int((~out.isfinite() & reference.isfinite()).sum()),
    )


def trend(out: Tensor, golden: Tensor, reference: Tensor) -> str:
    """How an output moved against its golden: improved, worsened or tied in L2; same if no bit did."""
    if torch.equal(out.view(torch.int16), golden.view(torch.int16)):
        return "same"
    return oracle.compare(out, golden, reference).word
