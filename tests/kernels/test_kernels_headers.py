"""The shared headers, compiled by themselves: exp exhaustively, conversions, the schedule, 64-bit offsets."""

import ctypes
import math
import os
import platform
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).parent / "support" / "headers.cc"
FIRST, LAST = 0xB3000000, 0xC2A00000  # -2^-25 and -80
CHUNKS = 64


@pytest.fixture(scope="session")
def headers(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("headers") / "headers.so"
    # Hardware fma where there is one: libm's gives the same bits at a tenth of the speed.
    has_fma = platform.machine() == "x86_64" and " fma " in Path("/proc/cpuinfo").read_text()
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++") or "c++"
    flags = ["-std=c++17", "-O3", "-ffp-contract=off", "-shared", "-fPIC", *(["-mfma"] if has_fma else [])]
    command = [compiler, *flags, f"-I{ROOT / 'kernels' / 'include'}", str(SOURCE), "-o", str(library)]
    subprocess.run(command, check=True, timeout=120)
    loaded = ctypes.CDLL(str(library))
    loaded.largest_error_ulp.restype = ctypes.c_double
    loaded.largest_error_ulp.argtypes = [ctypes.c_uint32] * 2
    loaded.exp_bits.restype = loaded.clamped_exp_bits.restype = ctypes.c_uint32
    loaded.exp_bits.argtypes = loaded.clamped_exp_bits.argtypes = [ctypes.c_uint32]
    loaded.token_offset.restype = ctypes.c_int64
    loaded.token_offset.argtypes = [
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_int,
    ]
    return loaded


def bits(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


def test_exp_is_within_an_ulp_everywhere(headers: ctypes.CDLL) -> None:
    """All 262 million arguments whose result isn't trivially 1."""
    edges = np.linspace(FIRST, LAST + 1, CHUNKS + 1).astype(np.int64)
    spans = [(int(a), int(b) - 1) for a, b in pairwise(edges)]
    with ThreadPoolExecutor(2) as pool:
        errors = list(pool.map(lambda span: headers.largest_error_ulp(*span), spans))
    assert 0.5 < max(errors) <= 0.9


def test_exp_near_zero_and_of_nan(headers: ctypes.CDLL) -> None:
    one = bits(1.0)
    for x in (0.0, -0.0, -1e-45, -1e-30, -(2.0**-26)):
        assert headers.exp_bits(bits(x)) == one
    assert headers.clamped_exp_bits(bits(-1e9)) == headers.exp_bits(bits(-80.0))
    assert headers.clamped_exp_bits(bits(-math.inf)) == headers.exp_bits(bits(-80.0))
    for nan in (0x7FC00000, 0xFFC00001, 0x7FFFFFFF):
        assert headers.clamped_exp_bits(nan) == 0x7FFFFFFF


def to_half(headers: ctypes.CDLL, values: np.ndarray) -> np.ndarray:
    result = np.empty(values.shape, np.uint16)
    headers.to_half(
        values.ctypes.data_as(ctypes.c_void_p),
        result.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(values.size),
    )
    return result


def test_halves_convert_as_numpy_does(headers: ctypes.CDLL) -> None:
    halves = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    values = np.empty(65536, np.float32)
    headers.from_half(
        halves.ctypes.data_as(ctypes.c_void_p), values.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(65536)
    )
    expected = halves.view(np.float16).astype(np.float32)
    finite = ~np.isnan(expected)
    assert (values.view(np.uint32)[finite] == expected.view(np.uint32)[finite]).all()
    assert np.isnan(values[~finite]).all()
    assert (to_half(headers, values)[finite] == halves[finite]).all()


def test_rounding_to_half(headers: ctypes.CDLL) -> None:
    """Random bits, and every point halfway between two halves with both neighbours."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = ((halves[:-1].astype(np.float64) + halves[1:]) / 2).astype(np.float32)
    near = np.concatenate([middles, np.nextafter(middles, 0), np.nextafter(middles, np.float32(1e9))])
    drawn = np.random.default_rng(0).integers(0, 2**32, 10**6, dtype=np.uint32).view(np.float32)
    values = np.concatenate([near, -near, drawn, np.float32([65519.99, 65520, np.inf])])
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(np.float16)
    finite = ~np.isnan(expected)
    found = to_half(headers, values)
    assert (found[finite] == expected.view(np.uint16)[finite]).all()
    assert (found[~finite] == 0x7FFF).all()


def test_e4m3_decodes_exactly(headers: ctypes.CDLL) -> None:
    value, residual = np.empty(256, np.uint16), np.empty(256, np.uint16)
    headers.decode(value.ctypes.data_as(ctypes.c_void_p), residual.ctypes.data_as(ctypes.c_void_p))
    codes = torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn)
    exact = codes.to(torch.float16).numpy()
    nan = np.isnan(exact)
    assert list(np.flatnonzero(nan)) == [0x7F, 0xFF]
    assert (value[~nan] == exact.view(np.uint16)[~nan]).all()
    assert np.isnan(value.view(np.float16)[nan]).all()
    lowered = residual.view(np.float16).astype(np.float64) * 2048
    assert (lowered[~nan] == exact[~nan]).all()
    assert (np.signbit(lowered) == np.signbit(exact))[~nan].all()
    assert (residual[nan] == 0).all()


@given(st.integers(1, 2**30), st.sampled_from([80, 108, 132]))
def test_splits_share_all_tiles_evenly(headers: ctypes.CDLL, longest: int, splits: int) -> None:
    active = headers.active_splits(longest, splits)
    expected = 1 if longest <= 128 else min(splits, -(-longest // 64))
    assert active == expected
    ranges = [
        (headers.tile_begin(longest, splits, s), headers.tile_end(longest, splits, s)) for s in range(splits)
    ]
    sizes = [end - begin for begin, end in ranges]
    assert ranges[0][0] == 0
    assert all(a[1] == b[0] for a, b in pairwise(ranges))
    assert sum(sizes) == -(-longest // 32)
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes[:active]) >= 1
    assert max(sizes[:active]) - min(sizes[:active]) <= 1
    assert not any(sizes[active:])


@given(
    st.integers(0, 2**31 - 1),
    st.sampled_from([16, 48, 848, 3456]),
    st.integers(0, 2**20),
    st.integers(0, 3455),
)
def test_offsets_are_64_bit(headers: ctypes.CDLL, block: int, page: int, stride: int, token: int) -> None:
    table = np.int32([7, block])
    inside = token % page
    found = headers.token_offset(table.ctypes.data, page, stride * 8, 264, page + inside)
    assert found == block * stride * 8 + inside * 264
