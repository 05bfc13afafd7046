"""What a call refuses, each with its exception and advice, and that nothing is written then."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kernel_cases import Call, codes, lengths, plain
from torch._subclasses.fake_tensor import FakeTensorMode

import grouped_attention as ga

CALL = plain()
ROWS, HEADS, DIM, PAGE = 5, 3, 64, 48
Change = Callable[[Call], dict[str, Any]]


def strided(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> torch.Tensor:
    """A uint8 view with these strides, its memory starting `offset` bytes past a 16-byte boundary."""
    reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + 1
    memory = torch.zeros(reach + offset + 16, dtype=torch.uint8)
    start = -memory.data_ptr() % 16 + offset
    return memory.as_strided(shape, strides, start)


def overlapping_out(call: Call, source: str) -> torch.Tensor:
    """An output that lies in the memory of an input."""
    memory = getattr(call, source)
    return (
        memory.view(torch.uint8)
        .flatten()[: ROWS * HEADS * DIM * 2]
        .view(torch.float16)
        .view(ROWS, HEADS, DIM)
    )


BLOCKS = CALL.k.shape[0]
# name: what is changed in a good call, the exception, and a part of its message.
REFUSED: dict[str, tuple[Change, type[Exception], str]] = {
    "q dtype": (lambda c: {"q": c.q.float()}, TypeError, "q must be float16, got float32: convert"),
    "q bfloat16": (lambda c: {"q": c.q.bfloat16()}, TypeError, "q must be float16, got bfloat16"),
    "k dtype": (lambda c: {"k": c.k.view(torch.int8)}, TypeError, r"k_cache must be uint8 .*, got int8"),
    "v dtype": (lambda c: {"v": c.v.view(torch.float8_e5m2)}, TypeError, "got float8_e5m2:"),
    "v fnuz": (lambda c: {"v": c.v.view(torch.float8_e4m3fnuz)}, TypeError, "got float8_e4m3fnuz:"),
    "table dtype": (lambda c: {"table": c.table.long()}, TypeError, "block_table must be int32, got int64"),
    "q complex": (lambda c: {"q": c.q.to(torch.complex64)}, TypeError, "got complex64:"),
    "lens bool": (lambda c: {"lens": c.lens > 0}, TypeError, "row_lens must be int32, got bool:"),
    "lens dtype": (lambda c: {"lens": c.lens.long()}, TypeError, "row_lens must be int32"),
    "not a tensor": (lambda c: {"k": c.k.numpy()}, TypeError, "k_cache must be a torch.Tensor, got ndarray"),
    "q negated when read": (lambda c: {"q": torch._neg_view(c.q)}, ValueError, "q is lazy, sparse"),
    "q of zeros when read": (
        lambda c: {"q": torch._efficientzerotensor(c.q.shape, dtype=torch.float16)},
        ValueError,
        "q is lazy, sparse",
    ),
    "q sparse": (lambda c: {"q": c.q.to_sparse()}, ValueError, "pass a dense copy"),
    "k fake": (
        lambda c: {"k": FakeTensorMode().from_tensor(c.k)},
        ValueError,
        "k_cache is lazy, sparse, fake",
    ),
    "1 row": (lambda c: {"q": c.q[:1], "lens": c.lens[:1]}, ValueError, "2 to 8 rows, got 1"),
    "9 rows": (
        lambda _: {"q": torch.zeros(9, HEADS, DIM).half(), "lens": torch.ones(9, dtype=torch.int32)},
        ValueError,
        "2 to 8 rows, got 9",
    ),
    "heads": (lambda _: {"q": torch.zeros(ROWS, 6, DIM).half()}, ValueError, r"\(6, 256\)"),
    "head_dim": (lambda _: {"q": torch.zeros(ROWS, 3, 128).half()}, ValueError, r"\(3, 64\)"),
    "q rank": (lambda c: {"q": c.q[None]}, ValueError, r"q must have shape \[rows, heads, head_dim\]"),
    "q strided": (
        lambda _: {"q": torch.zeros(ROWS, HEADS, 2 * DIM).half()[..., :DIM]},
        ValueError,
        r"q must be contiguous: pass q.contiguous\(\)",
    ),
    "k rank": (lambda c: {"k": c.k[:, :, 0]}, ValueError, r"k_cache must have shape"),
    "k head_dim": (lambda _: {"k": codes((BLOCKS, PAGE, 1, 256), 1)}, ValueError, "head_dim of q"),
    "kv heads": (lambda _: {"k": codes((BLOCKS, PAGE, 2, DIM), 1)}, ValueError, r"\[blocks, page, 1"),
    "no blocks": (lambda c: {"k": c.k[:0]}, ValueError, "k_cache has no blocks"),
    "pages differ": (
        lambda _: {"v": codes((BLOCKS, 32, 1, DIM), 1)},
        ValueError,
        "same blocks and page size",
    ),
    "blocks differ": (lambda c: {"v": c.v[1:]}, ValueError, "same blocks and page size"),
    "page 8": (
        lambda _: {"k": codes((9, 8, 1, DIM), 1), "v": codes((9, 8, 1, DIM), 1)},
        ValueError,
        "multiples of 16 from 16 to 3456",
    ),
    "page 24": (
        lambda _: {"k": codes((9, 24, 1, DIM), 1), "v": codes((9, 24, 1, DIM), 1)},
        ValueError,
        "pages of 24 tokens",
    ),
    "page 3472": (
        lambda _: {"k": codes((2, 3472, 1, DIM), 1), "v": codes((2, 3472, 1, DIM), 1)},
        ValueError,
        "pages of 3472 tokens",
    ),
    "inner stride": (
        lambda _: {"k": strided((BLOCKS, PAGE, 1, DIM), (PAGE * 128, 128, 128, 2))},
        ValueError,
        "k_cache must have an inner stride of 1, got 2",
    ),
    "token stride": (
        lambda _: {"v": strided((BLOCKS, PAGE, 1, DIM), (PAGE * 72 + 40, 68, 68, 1))},
        ValueError,
        "v_cache has a token stride of 68 bytes",
    ),
    "block stride": (
        lambda _: {"v": strided((BLOCKS, PAGE, 1, DIM), (PAGE * 64 + 4, 64, 64, 1))},
        ValueError,
        "v_cache has a block stride of 3076 bytes",
    ),
    "cache base": (
        lambda _: {"k": strided((BLOCKS, PAGE, 1, DIM), (PAGE * 64, 64, 64, 1), offset=8)},
        ValueError,
        "k_cache must start at a multiple of 16 bytes",
    ),
    "table rank": (
        lambda c: {"table": c.table[0]},
        ValueError,
        r"block_table must have shape \[1, entries\]",
    ),
    "two requests": (lambda c: {"table": c.table.expand(2, -1)}, ValueError, "one request per call"),
    "empty table": (lambda c: {"table": c.table[:, :0]}, ValueError, "at least one entry"),
    "table strided": (
        lambda _: {"table": torch.zeros(1, 14, dtype=torch.int32)[:, ::2]},
        ValueError,
        "block_table must be contiguous",
    ),
    "capacity": (
        lambda _: {"table": torch.zeros(1, 2**30 // PAGE + 1, dtype=torch.int32)},
        ValueError,
        r"more than 2\^30 tokens",
    ),
    "lens shape": (
        lambda _: {"lens": lengths(1, 2, 3)},
        ValueError,
        r"row_lens must have shape \[rows of q\]",
    ),
    "lens strided": (
        lambda _: {"lens": torch.ones(2 * ROWS, dtype=torch.int32)[::2]},
        ValueError,
        "row_lens must be contiguous",
    ),
    "live page id": (
        lambda c: {"table": torch.full_like(c.table, 10**6)},
        ValueError,
        r"block_table\[0, 0\] is 1000000, but the cache has blocks 0 to 9",
    ),
    "negative live page id": (lambda c: {"table": torch.full_like(c.table, -1)}, ValueError, "is -1"),
    "scale 0": (lambda _: {"softmax_scale": 0.0}, ValueError, "softmax_scale must be finite and positive"),
    "scale negative": (lambda _: {"k_scale": -1.0}, ValueError, "k_scale must be finite and positive"),
    "scale nan": (lambda _: {"v_scale": float("nan")}, ValueError, "v_scale must be finite and positive"),
    "scale inf": (lambda _: {"softmax_scale": float("inf")}, ValueError, "softmax_scale must be finite"),
    "scale too large": (
        lambda _: {"v_scale": 1e39},
        ValueError,
        "v_scale must be finite and positive as fp32",
    ),
    "scale too small": (
        lambda _: {"k_scale": 1e-46},
        ValueError,
        "k_scale must be finite and positive as fp32",
    ),
    "product too large": (
        lambda _: {"softmax_scale": 1e30, "k_scale": 1e30},
        ValueError,
        r"softmax_scale \* k_scale must be finite and positive",
    ),
    "product too small": (
        lambda _: {"softmax_scale": 1e-30, "k_scale": 1e-30},
        ValueError,
        r"softmax_scale \* k_scale must be finite and positive",
    ),
    "other device": (lambda c: {"k": c.k.to("meta")}, ValueError, "k_cache is on meta"),
}
BAD_OUT: dict[str, tuple[Callable[[Call], Any], type[Exception], str]] = {
    "negated when read": (lambda c: torch._neg_view(torch.empty_like(c.q)), ValueError, "out is lazy"),
    "dtype": (lambda c: torch.zeros_like(c.q, dtype=torch.float32), TypeError, "out must be float16"),
    "shape": (lambda c: torch.zeros_like(c.q)[:2], ValueError, "out must have shape of q"),
    "strided": (
        lambda _: torch.zeros(ROWS, HEADS, 2 * DIM).half()[..., :DIM],
        ValueError,
        "out must be contiguous",
    ),
    "not a tensor": (lambda c: np.zeros(c.q.shape, np.float16), TypeError, "out must be a torch.Tensor"),
    "is q": (lambda c: c.q, ValueError, "out overlaps q"),
    "in k": (lambda c: overlapping_out(c, "k"), ValueError, "out overlaps k_cache"),
    "in v": (lambda c: overlapping_out(c, "v"), ValueError, "out overlaps v_cache"),
}


@pytest.fixture(scope="module")
def library(host: Callable[[str], ga.Extension]) -> ga.Extension:
    return host("sm_70")


@pytest.mark.parametrize("name", REFUSED)
def test_refused_and_nothing_written(library: ga.Extension, name: str) -> None:
    change, exception, message = REFUSED[name]
    call = CALL.but(**change(CALL))
    out = torch.full((ROWS, HEADS, DIM), 7.0, dtype=torch.float16)
    with pytest.raises(exception, match=message):
        library.grouped_e4m3_fp32(*call.tensors, **call.scales, out=out)
    assert (out == 7).all()
    with pytest.raises(exception, match=message):
        library.grouped_e4m3_fp32_partials(*call.tensors, **call.scales)


@pytest.mark.parametrize("name", BAD_OUT)
def test_refused_outputs(library: ga.Extension, name: str) -> None:
    make, exception, message = BAD_OUT[name]
    call = CALL.but(q=CALL.q.clone(), k=CALL.k.clone(), v=CALL.v.clone())
    before = [x.clone() for x in call.tensors]
    with pytest.raises(exception, match=message):
        library.grouped_e4m3_fp32(*call.tensors, **call.scales, out=make(call))
    assert all(torch.equal(x, y) for x, y in zip(before, call.tensors, strict=True))


def test_outputs_in_tables_are_refused(library: ga.Extension) -> None:
    table = torch.zeros(1, ROWS * HEADS * DIM, dtype=torch.int32)
    with pytest.raises(ValueError, match="out overlaps block_table"):
        library.grouped_e4m3_fp32(
            CALL.q,
            CALL.k,
            CALL.v,
            table,
            CALL.lens,
            out=overlapping_out(CALL.but(table=table), "table"),
            **CALL.scales,
        )


def test_outputs_beside_an_input_are_taken(library: ga.Extension) -> None:
    memory = torch.zeros(2, ROWS, HEADS, DIM, dtype=torch.float16)
    memory[0] = CALL.q
    library.grouped_e4m3_fp32(memory[0], *CALL.tensors[1:], **CALL.scales, out=memory[1])
    assert torch.equal(memory[1], library.grouped_e4m3_fp32(*CALL.tensors, **CALL.scales))


def test_refused_workspaces(library: ga.Extension, host: Callable[[str], ga.Extension]) -> None:
    kind = "grouped_e4m3_fp32"
    with pytest.raises(ValueError, match="no workspace of kind 'e5m2'"):
        library.workspace("e5m2", heads=3, head_dim=64, device="cpu")
    with pytest.raises(ValueError, match=r"no instance \(6, 64\)"):
        library.workspace(kind, heads=6, head_dim=64, device="cpu")
    with pytest.raises(ValueError, match="this library runs on cpu, not on meta"):
        library.workspace(kind, heads=3, head_dim=64, device="meta")
    wide = library.workspace(kind, heads=6, head_dim=256, device="cpu")
    other = host("sm_90").workspace(kind, heads=3, head_dim=64, device="cpu")
    for workspace in (wide, other):
        with pytest.raises(ValueError, match=r"acc must have shape .*take it from this library's workspace"):
            library.grouped_e4m3_fp32(*CALL.tensors, **CALL.scales, workspace=workspace)
    with pytest.raises(TypeError, match=r"workspace must come from ext\.workspace"):
        library.grouped_e4m3_fp32(*CALL.tensors, **CALL.scales, workspace=wide.tensors)
