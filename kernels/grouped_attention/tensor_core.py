"""The tensor-core models of the CPU library, to be asked directly."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import torch

from grouped_attention.extension import Extension
from grouped_attention.load import load

# These run the model of sm_80 (docs/arithmetic.md, "One tensor-core product").
_SAME_MODEL = {"sm_86": "sm_80", "sm_89": "sm_80"}


def dot(
    a: npt.NDArray[np.float16], b: npt.NDArray[np.float16], c: npt.NDArray[np.float32], arch: str
) -> npt.NDArray[np.float32]:
    """d[i] = c[i] + Σ a[i, k]·b[i, k] as a tensor core of `arch` computes it: fp32 [n].

    a, b: fp16 [n, K], K a multiple of the group (4 on sm_70, 8 on sm_80, 16 on sm_90); c: fp32 [n]. Longer
    products run in groups along K, ascending. TypeError for dtypes; ValueError for shapes or an unknown arch.
    """
    _check(a, b, c)
    result = torch.empty(len(c), dtype=torch.float32)
    function = _host(_SAME_MODEL.get(arch, arch)).functions["tensor_core_dot"]
    function(_bits(a), _bits(b), torch.from_numpy(c.copy()), result)
    return result.numpy()


@cache
def _host(arch: str) -> Extension:
    return load(backend="host", arch=arch)


def _bits(x: npt.NDArray[np.float16]) -> torch.Tensor:
    return torch.from_numpy(x.copy(order="C").view(np.uint16))


def _check(a: object, b: object, c: object) -> None:
    for name, value, dtype in (("a", a, np.float16), ("b", b, np.float16), ("c", c, np.float32)):
        if not isinstance(value, np.ndarray) or value.dtype != dtype:
            raise TypeError(f"{name} must be a numpy array of {np.dtype(dtype).name}")
    assert isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and isinstance(c, np.ndarray)
    if a.ndim != 2 or b.shape != a.shape or c.shape != a.shape[:1]:
        raise ValueError(f"a and b must be [n, K] and c [n], got {a.shape}, {b.shape} and {c.shape}")
