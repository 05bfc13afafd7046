"""What a peer makes of a call's inputs before it can be timed: once per block table, while that lives."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, Generic, TypeVar

import torch
from torch.utils.weak import WeakIdKeyDictionary

_T = TypeVar("_T")


class Prepared(Generic[_T]):
    """Keeps what `make` returned. A table's contents and its cache must not change afterwards."""

    def __init__(self, make: Callable[..., _T]) -> None:
        self._make = make
        self._made: MutableMapping[torch.Tensor, tuple[int, _T]] = WeakIdKeyDictionary()

    def of(self, block_table: torch.Tensor, k_cache: torch.Tensor, *rest: Any) -> _T:
        """What was made for this table, else made now.

        RuntimeError while a graph is captured, and when the table was prepared for another cache.
        """
        if block_table not in self._made:
            if block_table.is_cuda and torch.cuda.is_current_stream_capturing():
                raise RuntimeError(
                    "call a peer once before its calls are captured: it prepares its inputs then"
                )
            self._made[block_table] = (k_cache.data_ptr(), self._make(block_table, k_cache, *rest))
        address, made = self._made[block_table]
        if address != k_cache.data_ptr():
            raise RuntimeError(
                "this block table was prepared for another cache: give each cache its own table"
            )
        return made
