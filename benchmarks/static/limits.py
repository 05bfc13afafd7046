"""What a multiprocessor of each architecture has, and how many blocks of a kernel fit on it.

Figures from the CUDA programming guide's table of compute capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WARP = 32
REGISTERS_PER_WARP_STEP = 256  # registers are handed out to warps in steps of this
SHARED_STEP_BYTES = 256


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Of one multiprocessor. `reserved_shared_bytes` is what the system takes of each block's share."""

    registers: int
    shared_bytes: int
    shared_bytes_per_block: int
    reserved_shared_bytes: int
    threads: int
    blocks: int


LIMITS: Mapping[str, Limits] = {
    "sm_70": Limits(
        registers=65536, shared_bytes=96 << 10, shared_bytes_per_block=96 << 10,
        reserved_shared_bytes=0, threads=2048, blocks=32,
    ),
    "sm_80": Limits(
        registers=65536, shared_bytes=164 << 10, shared_bytes_per_block=163 << 10,
        reserved_shared_bytes=1024, threads=2048, blocks=32,
    ),
    "sm_90": Limits(
        registers=65536, shared_bytes=228 << 10, shared_bytes_per_block=227 << 10,
        reserved_shared_bytes=1024, threads=2048, blocks=32,
    ),
}  # fmt: skip


def registers_per_block(registers: int, threads: int) -> int:
    """Registers that a block takes, as they are handed out."""
    return _up(registers * WARP, REGISTERS_PER_WARP_STEP) * -(-threads // WARP)


def blocks_per_multiprocessor(limits: Limits, *, registers: int, threads: int, shared_bytes: int) -> int:
    """How many blocks of a kernel fit at once; 0 when not even one does."""
    shared = _up(shared_bytes + limits.reserved_shared_bytes, SHARED_STEP_BYTES)
    return min(
        limits.blocks,
        limits.threads // (-(-threads // WARP) * WARP),
        limits.registers // registers_per_block(registers, threads),
        limits.shared_bytes // shared if shared else limits.blocks,
    )


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
