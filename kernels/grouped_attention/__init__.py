"""Grouped E4M3 attention with FP32 partials, for CUDA and, bit for bit alike, for the CPU.

>>> import grouped_attention as ga
>>> ext = ga.load(backend="host", arch="sm_70")
>>> out = ext.grouped_e4m3_fp32(q, k_cache, v_cache, block_table, row_lens, softmax_scale=0.0625)
"""

from grouped_attention import tensor_core
from grouped_attention.extension import Extension
from grouped_attention.load import SettingError, load
from grouped_attention.workspace import Workspace

__version__ = "0.1.0"

__all__ = ["Extension", "SettingError", "Workspace", "__version__", "load", "tensor_core"]
