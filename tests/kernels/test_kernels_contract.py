"""What a call promises besides its arithmetic: layouts, rows, tables, NaN, memory."""

from collections.abc import Callable

import pytest
import torch
from kernel_cases import Call, attend, codes, lengths, partials, plain

import grouped_attention as ga

INSTANCES = ((6, 256), (3, 64))
NAN_HALF, NAN_FLOAT, MINUS_INF = 0x7FFF, 0x7FFFFFFF, -0x800000
SPLITS = {"sm_70": 80, "sm_80": 108, "sm_90": 132}


def padded(cache: torch.Tensor, token_bytes: int, block_extra: int) -> torch.Tensor:
    """The same codes with wider strides, 0xFF in the gaps, on a 16-byte boundary."""
    blocks, page, _, dim = cache.shape
    block_bytes = page * token_bytes + block_extra
    memory = torch.full((blocks * block_bytes + 16,), 0xFF, dtype=torch.uint8)
    start = -memory.data_ptr() % 16
    view = memory.as_strided(cache.shape, (block_bytes, token_bytes, token_bytes, 1), start)
    view.copy_(cache)
    assert view.shape[-1] == dim
    return view


def interleaved(call: Call) -> Call:
    both = torch.stack([call.k, call.v], dim=1)
    return call.but(k=both[:, 0], v=both[:, 1])


def shifted(q: torch.Tensor, halves: int) -> torch.Tensor:
    """A contiguous copy that starts so many halves past a 16-byte boundary."""
    memory = torch.zeros(q.numel() + 16, dtype=torch.float16)
    start = (-memory.data_ptr() % 16) // 2 + halves
    view = memory[start : start + q.numel()].view(q.shape)
    assert view.data_ptr() % 16 == 2 * halves
    return view.copy_(q)


@pytest.mark.parametrize(("heads", "dim"), INSTANCES)
@pytest.mark.parametrize("page", [16, 48, 800, 848, 1616, 1648, 1728, 3296, 3456])
def test_pages_and_layouts_do_not_matter(
    host: Callable[[str], ga.Extension], heads: int, dim: int, page: int
) -> None:
    ext, tokens = host("sm_90"), 2000
    call = plain(heads=heads, dim=dim, rows=3, page=page, tokens=tokens)
    linear_k, linear_v = (c[call.table[0].long()].reshape(-1, dim)[:tokens] for c in (call.k, call.v))
    control = call.but(
        k=linear_k.view(125, 16, 1, dim),
        v=linear_v.view(125, 16, 1, dim),
        table=torch.arange(125).int()[None],
    )
    expected = attend(ext, control)
    variants = {
        "contiguous": call,
        "interleaved": interleaved(call),
        "token +8": call.but(k=padded(call.k, dim + 8, 0), v=padded(call.v, dim + 8, 0)),
        "block +8": call.but(k=padded(call.k, dim, 8), v=padded(call.v, dim, 8)),
        "both, of k only": call.but(k=padded(call.k, dim + 24, 40)),
        "float8": call.but(k=call.k.view(torch.float8_e4m3fn), v=call.v.view(torch.float8_e4m3fn)),
        "padded float8": call.but(k=padded(call.k, dim + 8, 8).view(torch.float8_e4m3fn)),
    }
    for name, variant in variants.items():
        assert torch.equal(attend(ext, variant), expected), name


def test_the_reviewed_stride(ext: ga.Extension) -> None:
    """[1, 848, 1, 256] with strides [223872, 264, 256, 1]: token 1 starts at byte 264."""
    call = plain(heads=6, dim=256, page=848, tokens=848)
    call = call.but(k=call.k[:1], v=call.v[:1], table=torch.zeros(1, 1, dtype=torch.int32))
    k = padded(call.k, 264, 0).as_strided((1, 848, 1, 256), (223872, 264, 256, 1))
    assert torch.equal(attend(ext, call.but(k=k)), attend(ext, call))


@pytest.mark.parametrize("halves", [1, 4, 7])
def test_offset_queries_and_outputs(ext: ga.Extension, halves: int) -> None:
    call = plain(heads=6, dim=256)
    expected = attend(ext, call)
    assert torch.equal(attend(ext, call.but(q=shifted(call.q, halves))), expected)
    out = shifted(torch.zeros_like(call.q), halves)
    assert torch.equal(attend(ext, call, out=out), expected)


def test_out_is_returned_and_filled(ext: ga.Extension) -> None:
    call, out = plain(), torch.full((5, 3, 64), torch.nan, dtype=torch.float16)
    assert ext.grouped_e4m3_fp32(*call.tensors, **call.scales, out=out) is out
    assert torch.equal(out.view(torch.int16), attend(ext, call))


def test_inactive_rows_are_zero_and_change_nobody(ext: ga.Extension) -> None:
    call = plain(rows=4, tokens=500)
    expected = attend(ext, call.but(lens=lengths(300, 500, 500, 500)))
    found = attend(ext, call.but(lens=lengths(300, 0, -7, 500)))
    assert torch.equal(found[[0, 3]], expected[[0, 3]])
    assert (found[1:3] == 0).all()


def test_rows_over_capacity_are_nan_and_change_nobody(ext: ga.Extension) -> None:
    call = plain(rows=3, tokens=480)
    capacity = call.table.shape[1] * 48
    lens = (capacity, capacity + 1, 2**31 - 1)
    found = attend(ext, call.but(lens=lengths(*lens)))
    assert torch.equal(found[0], attend(ext, call.but(lens=lengths(capacity, 0, 0)))[0])
    assert (found[1:] == NAN_HALF).all()


def test_no_live_row_reads_nothing(ext: ga.Extension) -> None:
    call = plain(rows=2).but(lens=lengths(0, -(2**31)))
    hostile = call.but(table=torch.full_like(call.table, -1))
    workspace = ext.workspace("grouped_e4m3_fp32", heads=3, head_dim=64, device="cpu")
    for buffer in workspace.tensors:
        buffer.fill_(torch.nan)
    assert (attend(ext, hostile, workspace=workspace) == 0).all()


@pytest.mark.parametrize("tail", [-1, 2**31 - 1, -(2**31)])
def test_the_table_past_the_longest_row_is_never_followed(ext: ga.Extension, tail: int) -> None:
    call = plain(tokens=300, page=48)
    table = torch.nn.functional.pad(call.table, (0, 5), value=tail)
    assert torch.equal(attend(ext, call.but(table=table)), attend(ext, call))


def test_dead_tokens_never_matter(ext: ga.Extension) -> None:
    call = plain(tokens=300, page=48)
    k, v = call.k.clone(), call.v.clone()
    dead = torch.ones(k.shape[:2], dtype=torch.bool)
    for token in range(300):
        dead[call.table[0, token // 48].item(), token % 48] = False
    k[dead], v[dead] = 0x7F, 0xFF
    assert torch.equal(attend(ext, call.but(k=k, v=v)), attend(ext, call))


@pytest.mark.parametrize("code", [0x7F, 0xFF])
@pytest.mark.parametrize("token", [0, 31, 32, 150, 297])
def test_a_nan_key_reaches_the_rows_that_see_it(ext: ga.Extension, code: int, token: int) -> None:
    call = plain(rows=4, tokens=300).but(lens=lengths(40, 150, 298, 300))
    k = call.k.clone()
    k[call.table[0, token // 48].item(), token % 48, 0, 17] = code
    sees = call.lens > token
    found, expected = attend(ext, call.but(k=k)), attend(ext, call)
    assert (found[sees] == NAN_HALF).all()
    assert torch.equal(found[~sees], expected[~sees])


@pytest.mark.parametrize("code", [0x7F, 0xFF])
@pytest.mark.parametrize("token", [0, 31, 32, 150, 297])
def test_a_nan_value_reaches_its_dimension_alone(ext: ga.Extension, code: int, token: int) -> None:
    call = plain(rows=4, tokens=300).but(lens=lengths(40, 150, 298, 300))
    v, clean = call.v.clone(), call.v.clone()
    place = (call.table[0, token // 48].item(), token % 48, 0, 17)
    v[place], clean[place] = code, 0
    found, expected = attend(ext, call.but(v=v)), attend(ext, call.but(v=clean))
    hit = torch.zeros_like(found, dtype=torch.bool)
    hit[call.lens > token, :, 17] = True
    assert (found[hit] == NAN_HALF).all()
    assert torch.equal(found[~hit], expected[~hit])


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize("where", [0, 47, 48, 63])
def test_a_special_query_reaches_its_row_and_head_alone(ext: ga.Extension, value: float, where: int) -> None:
    call = plain(rows=3, tokens=200)
    q = call.q.clone()
    q[1, 2, where] = value
    found, expected = attend(ext, call.but(q=q)), attend(ext, call)
    hit = torch.zeros_like(found, dtype=torch.bool)
    hit[1, 2] = True
    assert (found[hit] == NAN_HALF).all()
    assert torch.equal(found[~hit], expected[~hit])


def test_zero_results_are_positive(ext: ga.Extension) -> None:
    call = plain(tokens=100)
    negative_zeros = torch.full_like(call.v, 0x80)
    assert (attend(ext, call.but(v=negative_zeros)) == 0).all()
    tiny = torch.full_like(call.v, 0x81)
    assert (attend(ext, call.but(v=tiny, v_scale=1e-20)) == 0).all()


def test_partials_outside_live_rows(ext: ga.Extension) -> None:
    call = plain(rows=4, tokens=200).but(lens=lengths(0, 200, 2**30, 40))
    acc, state = partials(ext, call)
    assert acc.shape == (SPLITS[ext.arch], 4, 3, 64)
    assert state.shape == (SPLITS[ext.arch], 4, 3, 2)
    for empty in ((slice(None), 0), (slice(4, None), 1), (slice(1, None), 3)):
        assert (acc[empty] == 0).all()
        assert (state[empty][..., 0] == MINUS_INF).all()
        assert (state[empty][..., 1] == 0).all()
    assert (acc[:, 2] == NAN_FLOAT).all()
    assert (state[:, 2] == NAN_FLOAT).all()
    assert (state[:4, 1, :, 1].view(torch.float32) >= 1).all()


def test_any_bytes_are_valid_in_a_workspace(ext: ga.Extension) -> None:
    call = plain(rows=5, tokens=700)
    workspace = ext.workspace("grouped_e4m3_fp32", heads=3, head_dim=64, device="cpu")
    expected = attend(ext, call)
    for dirt in (torch.nan, torch.inf, -1.0, 0.0, 3e38):
        for buffer in workspace.tensors:
            buffer.fill_(dirt)
        assert torch.equal(attend(ext, call, workspace=workspace), expected), dirt


def test_page_offsets_pass_four_gigabytes(ext: ga.Extension) -> None:
    """Blocks 2^31 bytes apart in reserved, never touched memory."""
    stride = 2**31 + 8
    memory = torch.empty(2 * stride + 16 * 64 + 16, dtype=torch.uint8)
    start = -memory.data_ptr() % 16
    k = memory.as_strided((3, 16, 1, 64), (stride, 64, 64, 1), start)
    small = codes((3, 16, 1, 64), 4)
    k.copy_(small)
    call = plain(rows=2, page=16, tokens=40).but(k=small, v=small, table=torch.tensor([[2, 0, 1]]).int())
    assert torch.equal(attend(ext, call.but(k=k, v=k)), attend(ext, call))
