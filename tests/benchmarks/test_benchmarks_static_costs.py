"""Static costs: the assembler's log, limits, and each gate passing and failing."""

from __future__ import annotations

import pytest
from compiler_output import WARNING, block, cost, elf, kernel, properties
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.static import costs, judge, ptxas
from benchmarks.static.costs import Costs, CostsError
from benchmarks.static.limits import LIMITS, blocks_per_multiprocessor, registers_per_block
from benchmarks.static.ptxas import Function, PtxasError

NAMES = st.text("abcdefgh_0123456789", min_size=1, max_size=12)
FUNCTIONS = st.builds(
    Function,
    name=NAMES,
    arch=st.sampled_from(sorted(LIMITS)),
    is_entry=st.just(True),
    stack_bytes=st.integers(0, 10**6),
    spill_store_bytes=st.integers(0, 10**6),
    spill_load_bytes=st.integers(0, 10**6),
    registers=st.integers(1, 255),
    static_shared_bytes=st.integers(0, 10**5),
)


@given(functions=st.lists(FUNCTIONS, min_size=1, max_size=5, unique_by=lambda f: f.name))
def test_log_roundtrip(functions: list[Function]) -> None:
    text = WARNING + "ptxas info    : 0 bytes gmem\n" + "".join(map(block, functions))
    assert ptxas.parse(text) == tuple(functions)


@given(text=st.text(max_size=200))
def test_noise_is_no_log(text: str) -> None:
    with pytest.raises(PtxasError):
        ptxas.parse(text)


@given(functions=st.lists(FUNCTIONS, min_size=1, max_size=3, unique_by=lambda f: f.name), data=st.data())
def test_a_log_with_a_lost_line_is_never_read_as_whole(
    functions: list[Function], data: st.DataObject
) -> None:
    lines = "".join(map(block, functions)).splitlines(keepends=True)
    needed = [n for n, line in enumerate(lines) if "Compile time" not in line]
    lost = data.draw(st.sampled_from(needed))
    try:
        found = ptxas.parse("".join(lines[:lost] + lines[lost + 1 :]))
    except PtxasError:
        return
    assert found != tuple(functions)


def test_functions_that_are_not_inlined_are_found() -> None:
    helper = kernel("helper", is_entry=False, registers=None, spill_store_bytes=8)
    assert ptxas.parse(block(kernel(), helpers=properties(helper))) == (helper, kernel())


def test_a_kernel_twice_is_refused() -> None:
    with pytest.raises(PtxasError, match="twice"):
        ptxas.parse(block(kernel()) * 2)


@pytest.mark.parametrize(
    ("registers", "threads", "expected"), [(255, 256, 65536), (256, 256, 65536), (33, 64, 2560), (1, 33, 512)]
)
def test_registers_are_handed_out_in_steps(registers: int, threads: int, expected: int) -> None:
    assert registers_per_block(registers, threads) == expected


@pytest.mark.parametrize(
    ("arch", "registers", "threads", "shared", "blocks"),
    [
        ("sm_70", 32, 1024, 0, 2),
        ("sm_70", 255, 256, 0, 1),
        ("sm_70", 32, 256, 48 << 10, 2),
        ("sm_70", 32, 256, (48 << 10) + 1, 1),
        ("sm_70", 32, 256, (96 << 10) + 1, 0),
        ("sm_70", 16, 32, 0, 32),
        ("sm_90", 32, 256, 113 << 10, 2),
        ("sm_90", 32, 256, (113 << 10) + 1, 1),
    ],
)
def test_occupancy(arch: str, registers: int, threads: int, shared: int, blocks: int) -> None:
    found = blocks_per_multiprocessor(LIMITS[arch], registers=registers, threads=threads, shared_bytes=shared)
    assert found == blocks


def test_costs_join_log_cubin_and_library() -> None:
    helper = kernel("helper", is_entry=False, registers=None, spill_load_bytes=4)
    log = block(kernel(static_shared_bytes=1024), helpers=properties(helper))
    (found,) = costs.assemble(log, elf({"k": 256, "helper": None}), {"k": 2048}, "sm_70")
    assert (found.threads, found.registers_per_block, found.code_bytes) == (256, 16384, 128)
    assert (found.shared_bytes, found.spill_bytes, found.blocks_per_multiprocessor) == (3072, 4, 4)


BROKEN: dict[str, tuple[dict[str, int | None], dict[str, int], str]] = {
    "other kernels in the cubin": ({"other": 256}, {"k": 0}, "sm_70"),
    "code without a log": ({"k": 256, "more": 256}, {"k": 0}, "sm_70"),
    "no launch bound": ({"k": None}, {"k": 0}, "sm_70"),
    "dynamic shared memory not stated": ({"k": 256}, {}, "sm_70"),
    "another architecture": ({"k": 256}, {"k": 0}, "sm_90"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_does_not_fit_together_is_unreadable(case: str) -> None:
    kernels, dynamic, arch = BROKEN[case]
    with pytest.raises(CostsError) as caught:
        costs.assemble(block(kernel()), elf(kernels), dynamic, arch)
    assert caught.value.code == "static-unreadable"


def test_costs_within_limits_are_not_complained_of() -> None:
    assert judge.complaints([cost()], [cost()]) == ()
    assert judge.complaints([cost(registers_per_block=65536, dynamic_shared_bytes=96 << 10)], None) == ()


@pytest.mark.parametrize(
    ("code", "fields", "limit"),
    [
        ("spills", {"spill_store_bytes": 1}, "1 bytes of spill stores"),
        ("spills", {"spill_load_bytes": 1}, "1 of loads"),
        ("registers-per-block", {"registers_per_block": 65537}, "65536"),
        ("shared-per-block", {"static_shared_bytes": 1, "dynamic_shared_bytes": 96 << 10}, "98304"),
    ],
)
def test_each_limit_is_named(code: str, fields: dict[str, int], limit: str) -> None:
    (reason,) = judge.complaints([cost(**fields)], None)
    assert reason.code == code
    assert limit in reason.text
    assert "k: " in reason.text


def test_shared_limit_is_the_architectures() -> None:
    assert judge.complaints([cost(arch="sm_90", dynamic_shared_bytes=227 << 10)], None) == ()
    (reason,) = judge.complaints([cost(arch="sm_90", dynamic_shared_bytes=(227 << 10) + 1)], None)
    assert reason.code == "shared-per-block"


def test_steps_against_the_base() -> None:
    def codes(new: Costs, old: Costs) -> set[str]:
        return {reason.code for reason in judge.complaints([new], [old])}

    assert codes(cost(blocks_per_multiprocessor=3), cost()) == {"occupancy-step"}
    assert codes(cost(blocks_per_multiprocessor=5), cost()) == set()
    assert codes(cost(spill_store_bytes=4), cost()) == {"spills", "more-spills"}
    assert codes(cost(spill_store_bytes=4), cost(spill_store_bytes=4)) == {"spills"}
    assert codes(cost(), cost(kernel="gone")) == {"kernel-vanished"}
