"""Rows with nothing poisoned give what they give with poison; the debug operation runs on the odd ones."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import grouped_attention
from fixtures.cases import boundary
from fixtures.cases.realise import realise
from fixtures.cases.spec import Spec
from grouped_attention.extension import Extension
from sanitizer.rows import Rows, has_partials

NAMES = "page-16-len-31-3x64,rows-2-3x64,empty-last-3x64,states-shrink-3x64,dirt-ff-3x64,refused-q-wide-3x64"


@pytest.fixture(scope="module")
def extension() -> Extension:
    return grouped_attention.load(backend="host", arch="sm_90")


@pytest.mark.parametrize("untouched", [False, True])
def test_rows_come_out_right(extension: Extension, untouched: bool) -> None:
    rows = Rows(extension=extension, own=True, untouched=untouched)
    assert [rows.complaint(spec) for spec in boundary.select(NAMES)] == [None] * 6


def test_without_poison_only_what_may_be_read_is_written() -> None:
    (spec,) = boundary.select("page-16-len-31-3x64")
    made: list[Tensor] = []

    def allocate(count: int) -> Tensor:
        made.append(torch.zeros(count, dtype=torch.uint8))
        return made[-1]

    arguments = realise(replace(spec, poison=False), allocate)
    pages = arguments.block_table[0]
    assert not arguments.out.view(torch.int16).any()
    for cache in (arguments.k_cache, arguments.v_cache):
        assert cache[pages[0]].any() and not cache[pages[1], 15:].any() and cache[pages[1], :15].any()
    poisoned = realise(spec, allocate)
    assert poisoned.out.view(torch.int16).all() and poisoned.k_cache[pages[1], 15:].all()


class Blind:
    """A library whose debug operation fails."""

    backend, functions = "host", frozenset[str]()

    def __init__(self, extension: Extension) -> None:
        self.grouped_e4m3_fp32, self.workspace = extension.grouped_e4m3_fp32, extension.workspace

    def grouped_e4m3_fp32_partials(self, *_tensors: Tensor, **_scales: float) -> None:
        raise RuntimeError("no partials")


def test_the_debug_operation_is_called_on_few_many_empty_and_over(extension: Extension) -> None:
    found: dict[str, Spec] = {spec.name: spec for spec in boundary.table() if has_partials(spec)}
    wanted = {f"{name}-3x64" for name in ("rows-2", "rows-8", "empty-all", "empty-last", "page-16-over")}
    assert wanted <= set(found) and "permuted-3x64" not in found and "refused-q-wide-3x64" not in found
    rows = Rows(extension=Blind(extension), own=True, untouched=False)
    with pytest.raises(RuntimeError, match="no partials"):
        rows.complaint(found["rows-2-3x64"])
