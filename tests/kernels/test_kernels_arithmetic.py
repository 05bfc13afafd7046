"""The bits of docs/arithmetic.md: against a second implementation of that page, and among the CPU paths."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import Call, attend, codes, hostile, lengths, partials, plain, same_bits
from kernel_reference import Reference, combine, constant, exponential, fma

import grouped_attention as ga

Implementations = Callable[[str], Mapping[str, ga.Extension]]
CALLS = {
    "one token": plain(rows=2, tokens=2, page=16).but(lens=lengths(1, 1)),
    "one split": plain(rows=3, tokens=128),
    "a tile more": plain(rows=2, tokens=129),
    "uneven splits": plain(rows=2, tokens=333, page=80),
    "ragged": plain(rows=4, tokens=200).but(lens=lengths(7, 200, 33, 64)),
    "idle and over": plain(rows=4, tokens=100).but(lens=lengths(0, 100, 10**6, -1)),
    "no live row": plain(rows=2, tokens=40).but(lens=lengths(0, 10**6)),
    "scaled": plain(rows=2, tokens=150).but(k_scale=0.3, v_scale=0.0371, softmax_scale=0.9),
    "far apart": plain(rows=2, tokens=150).but(softmax_scale=40.0),
    "wide": plain(heads=6, dim=256, rows=2, tokens=70),
    "infinite scores": plain(rows=2, tokens=90).but(softmax_scale=1e38),
}


def agrees(reference: np.ndarray, bits: torch.Tensor) -> bool:
    """Equal bits, every NaN being the canonical one."""
    value = reference.view(f"i{reference.itemsize}").copy()
    value[np.isnan(reference)] = {2: 0x7FFF, 4: 0x7FFFFFFF}[reference.itemsize]
    return bool((value == bits.numpy()).all())


def nan_in_values(call: Call) -> Call:
    v = call.v.clone()
    v[call.table[0, 0].item(), 5, 0, 9] = 0x7F
    v[call.table[0, -1].item(), 0, 0, 3] = 0xFF
    return call.but(v=v)


def nan_in_keys(call: Call) -> Call:
    k = call.k.clone()
    k[call.table[0, -1].item(), 1, 0, 63] = 0xFF
    return call.but(k=k)


def scored(scores: torch.Tensor, v: torch.Tensor) -> Call:
    """A call with keys `scores` [T, 2] in the dimensions that q looks at; v are codes [T, 64]."""
    q = torch.zeros(2, 3, 64)
    q[..., :2] = torch.tensor([1.0, 2.0**-13])
    tokens = len(v)
    k = torch.zeros(1, 64, 1, 64)
    k[0, :tokens, 0, :2] = scores
    values = torch.zeros((1, 64, 1, 64), dtype=torch.uint8)
    values[0, :tokens, 0] = v
    return Call(
        q=q.half(),
        k=k.to(torch.float8_e4m3fn).view(torch.uint8),
        v=values,
        table=torch.zeros(1, 1, dtype=torch.int32),
        lens=lengths(tokens, tokens),
        softmax_scale=1.0,
    )


def subnormal_residuals() -> Call:
    """Only residuals times subnormal V / 2048 are left: tokens 1 and 2 cancel, of 3 and 4 the high halves do.

    They are of two sizes, so that the clamp of V's exponent decides which bits are cut.
    """
    scores = torch.tensor([[0.0, 0], [-0.375, 0], [-0.375, 0], [-7.0, 0], [-7.0, 1]])
    large, small = (1 + torch.arange(64).div(step, rounding_mode="floor") % 7 for step in (1, 7))
    zero = torch.zeros_like(large)
    v = torch.stack([zero, large, large + 0x80, small, small + 0x80]).to(torch.uint8)
    return scored(scores, v)


def clamped_rescale() -> Call:
    """One tile of large values, then one without values but scores higher by 104."""
    scores = torch.zeros(64, 2)
    scores[32:, 0] = 104
    v = torch.zeros((64, 64), dtype=torch.uint8)
    v[:32] = 0x7E
    return scored(scores, v)


CALLS["subnormal residuals"] = subnormal_residuals()
CALLS["clamped rescale"] = clamped_rescale()
CALLS["vanishing scores"] = plain(rows=2, tokens=90).but(q=plain(rows=2).q * 0.01, softmax_scale=1e-45)
CALLS["nan in v"] = nan_in_values(CALLS["ragged"])
CALLS["nan in k"] = nan_in_keys(CALLS["uneven splits"])


@pytest.mark.parametrize("name", CALLS)
def test_partials_and_output_follow_the_page(ext: ga.Extension, name: str) -> None:
    call = CALLS[name]
    with np.errstate(all="ignore"):
        reference = Reference(call=call, arch=ext.arch)
        acc, state = reference.run()
        out = combine(acc, state, call.lens.numpy().astype(np.int64), reference.capacity)
    found_acc, found_state = partials(ext, call)
    assert agrees(acc, found_acc)
    assert agrees(state, found_state)
    assert agrees(out, attend(ext, call))


@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_90"])
def test_every_implementation_gives_the_same_bits(implementations: Implementations, arch: str) -> None:
    found = implementations(arch)
    assert {"scalar", "baseline"} <= set(found)

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(st.integers(0, 2**32))
    def agree(seed: int) -> None:
        call = hostile(seed)
        for name in set(found) - {"scalar"}:
            assert same_bits(found["scalar"], found[name], call), name

    agree()


@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_90"])
def test_all_short_lengths_agree(implementations: Implementations, arch: str) -> None:
    found = implementations(arch)
    base = plain(rows=2, tokens=200, page=16)
    for tokens in range(1, 201):
        call = base.but(lens=lengths(tokens, max(tokens - 1, 1)))
        expected = attend(found["scalar"], call)
        assert all(torch.equal(attend(other, call), expected) for other in found.values()), tokens


def test_an_unknown_implementation_is_refused(
    host: Callable[[str], ga.Extension], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copy(host("sm_70").library, tmp_path / "library.so")
    monkeypatch.setenv("GROUPED_ATTENTION_CPU", "sparc")
    with pytest.raises(ga.SettingError, match="GROUPED_ATTENTION_CPU=sparc can't be used: choose"):
        ga.load(copy)


def test_the_made_up_calls_do_what_they_say(ext: ga.Extension) -> None:
    acc, _ = (x.view(torch.float32) for x in partials(ext, CALLS["subnormal residuals"]))
    assert ((acc[0] != 0) & (acc[0].abs() < 2.0**-22)).all(), "the high halves cancel"
    acc, state = (x.view(torch.float32) for x in partials(ext, CALLS["clamped rescale"]))
    assert acc[0].max() == acc[0].min() == np.float32(448 * 32) * exponential(np.float32([-80]))[0]
    _, state = partials(ext, CALLS["vanishing scores"])
    assert (state[0, ..., 0] == 0).all(), "a maximum of +0, not -0"


def test_models_differ_between_architectures(host: Callable[[str], ga.Extension]) -> None:
    call = plain(heads=6, dim=256, rows=5, tokens=1000)
    outputs = [attend(host(arch), call) for arch in ("sm_70", "sm_80", "sm_90")]
    assert not torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[1], outputs[2])


@pytest.mark.parametrize(("heads", "dim"), [(6, 256), (3, 64)])
def test_close_to_exact_attention(ext: ga.Extension, heads: int, dim: int) -> None:
    call = plain(heads=heads, dim=dim, tokens=3000, page=848)
    block = call.table[0].long()
    k, v = (c[block].view(torch.float8_e4m3fn).double().reshape(-1, dim) for c in (call.k, call.v))
    scores = torch.einsum("rhd,td->rht", call.q.double(), k) * call.softmax_scale
    dead = torch.arange(len(k)) >= call.lens[:, None, None]
    exact = torch.softmax(scores.masked_fill(dead, -torch.inf), -1) @ v
    floor = (exact.half().double() - exact).norm() / exact.norm()
    error = (attend(ext, call).view(torch.float16).double() - exact).norm() / exact.norm()
    assert error <= 1.02 * floor + 2e-6


@pytest.mark.parametrize("tokens", [131072, 262144])
def test_an_exact_midpoint_rounds_to_even(ext: ga.Extension, tokens: int) -> None:
    """Uniform scores, V = 1.125 once in 256 tokens, else 1: exactly 1 + 2^-11."""
    page = 2048
    k = torch.zeros((1, page, 1, 64), dtype=torch.uint8)
    v = torch.full((1, page, 1, 64), 0x38, dtype=torch.uint8)
    v[0, ::256] = 0x39
    table = torch.zeros((1, tokens // page), dtype=torch.int32)
    q = torch.ones(2, 3, 64, dtype=torch.float16)
    call = Call(q=q, k=k, v=v, table=table, lens=lengths(tokens, tokens))
    assert (attend(ext, call) == 0x3C00).all()


def test_small_residuals_survive(ext: ga.Extension) -> None:
    """Scores 0 (V = 0) once in 32 tokens and -8 elsewhere: what fp16 probabilities alone get wrong."""
    tokens, page = 5120, 512
    k = torch.full((10, page, 1, 64), 0xB8, dtype=torch.uint8)  # -1
    v = codes((1, 1, 1, 64), 5).expand(10, page, 1, 64).clone()
    k[:, ::32], v[:, ::32] = 0, 0
    table = torch.arange(10, dtype=torch.int32)[None]
    q = torch.full((2, 3, 64), 0.125, dtype=torch.float16)
    call = Call(q=q, k=k, v=v, table=table, lens=lengths(tokens, tokens), softmax_scale=1.0)
    acc, state = (x.view(torch.float32).double() for x in partials(ext, call))
    weight = np.exp(-8.0)
    exact = v[0, 1, 0].view(torch.float8_e4m3fn).double() * (31 * weight / (1 + 31 * weight))
    found = acc.sum(0) / state[..., 1].sum(0)[..., None]
    assert ((found - exact).norm() / exact.expand_as(found).norm()) < 3e-6


def test_the_reference_itself() -> None:
    """The second implementation's own building blocks, where exact answers are known."""
    a = np.float32([1 + 2**-12, 3.0, 1e-30])
    b = np.float32([1 + 2**-12, 1 / 3, 1e-30])
    c = np.float32([-1.0, -1.0, 1e-45])
    exact = [int(x) for x in (fma(a, b, c).astype(np.float64)[:1] * 2**24)]
    assert exact == [2**13 + 1], "one rounding, not two"
    assert exponential(np.float32([0.0]))[0] == 1
    assert abs(float(exponential(np.float32([-80.0]))[0]) / np.exp(-80.0) - 1) < 2**-23
    assert constant(0x3F800000) == 1
