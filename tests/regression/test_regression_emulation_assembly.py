"""Inline PTX as calls, and the launch code that the emulator stands in for."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grouped_attention.build import build, default_store
from regression.emulation import assembly, compiler, launch, results
from regression.emulation.compiler import CompileError
from regression.emulation.emulator import Emulator
from regression.emulation.results import STUCK, CaseResult, Emulation, Finding

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
Edited = Callable[..., Path]


@pytest.fixture
def edited(tmp_path: Path) -> Edited:
    """A copy of the kernels in which a text of a file is another one."""

    def copy(name: str, old: str, new: str) -> Path:
        kernels = shutil.copytree(KERNELS, tmp_path / "kernels")
        text = (kernels / name).read_text()
        assert old in text
        (kernels / name).write_text(text.replace(old, new))
        return Path(kernels)

    return copy


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ('asm("bar.sync 1, 64;");', "simt::ptx::bar_sync(1, 64);"),
        ('asm volatile("cp.async.wait_all;" ::: "memory");', "simt::ptx::cp_async_wait_all();"),
        ('asm("ld.global.f32 %0, [%1+4];" : "=f"(x) : "l"(p));', "ld<float>(simt::moved((p), 4), (x));"),
        ('asm("st.shared.v2.b32 [%0], {%1, %2};"::"r"(f(a, b)),"r"(x),"r"(A::y));',
         "st<uint32_t>((f(a, b)), (x), (A::y));"),
        ('asm("mov.u32 %0, %%laneid;" : "=r"(x));', "simt::ptx::laneid((x));"),
    ],
)  # fmt: skip
def test_a_known_instruction_becomes_a_call(source: str, call: str) -> None:
    assert assembly.translate(source).endswith(call)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ('asm("wgmma.fence.sync.aligned;");', "the PTX instruction wgmma.fence.sync.aligned is"),
        ('asm("{ .reg .pred p; setp.ne.b32 p, %0, 0; }" :: "r"(x));', "several instructions"),
        ('asm(NAME " %0;" :: "r"(x));', "put together by macros"),
        ('asm("bar.sync %[n];" :: [n] "r"(1));', "operands"),
        ('asm("ld.global.u32 %0, [array];" : "=r"(x));', "with such operands"),
    ],
)
def test_another_one_is_named_where_it_is_used(source: str, why: str) -> None:
    translated = assembly.translate(source)
    assert "simt::ptx" not in translated and "__attribute__((error(" in translated and why in translated


def test_lines_stay_and_other_text_does_too() -> None:
    other = '// asm("a;")\nx("asm(1)"); /* asm("b;\n") */\nasm volatile("" ::: "memory");\n'
    source = f'{other}asm("bar.sync"\n    " 0;");\n'
    translated = assembly.translate(source)
    assert translated.count("\n") == source.count("\n")
    assert translated == source.replace('asm("bar.sync"\n    " 0;")', "simt::ptx::bar_sync(0)\n")


def test_all_of_the_kernels_instructions_are_known() -> None:
    for path in (each for name in compiler.SOURCES for each in (KERNELS / name).rglob("*.*h")):
        assert "simt_unknown" not in assembly.translate(path.read_text()), path


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ('asm volatile("wgmma.fence.sync.aligned;");', "the PTX instruction wgmma.fence.sync.aligned"),
        ("if (__expf(0.5f) == 0.0f) return;", "__expf"),
        ("if (__activemask() == 0) return;", "__activemask"),
    ],
)
def test_what_isnt_known_is_named(edited: Edited, tmp_path: Path, what: str, named: str) -> None:
    kernels = edited("src/cuda/combine.cuh", "  __shared__", f"  {what}\n  __shared__")
    with pytest.raises(CompileError) as caught:
        compiler.build(kernels, "sm_90", tmp_path)
    first = str(caught.value).splitlines()[0]
    assert caught.value.code == "not-emulated" and named in first and ": src/cuda/combine.cuh:" in first


def test_an_instruction_that_nothing_uses_is_no_hindrance(edited: Edited, tmp_path: Path) -> None:
    unused = '__device__ inline void unused() { asm("wgmma.fence.sync.aligned;"); }\n'
    kernels = edited("src/cuda/ptx.cuh", "// All but the last", f"{unused}// All but the last")
    assert Emulator(compiler.build(kernels, "sm_90", tmp_path)).knows_launch


def test_the_launch_is_the_one_that_the_emulator_follows() -> None:
    assert launch.is_known(KERNELS), (
        f"bring simt/grid.cc into line with {launch.FILES}, then KNOWN in regression/emulation/launch.py is "
        f"{launch.digest(KERNELS)}"
    )


@pytest.mark.parametrize(
    ("name", "old", "new", "known"),
    [
        ("src/cuda/export.cc", "kThreads, 1, 1", "128, 1, 1", False),
        ("src/cuda/kernels.cu", "grouped::run_combine", "if (0) grouped::run_combine", False),
        ("src/cuda/export.cc", "the launch was refused", "the launch went wrong", True),
        ("src/cuda/kernels.cu", "kThreads, 1)", "kThreads, 2)", True),
    ],
)
def test_a_changed_launch_is_noticed(edited: Edited, name: str, old: str, new: str, known: bool) -> None:
    assert launch.is_known(edited(name, old, new)) == known


def test_a_kernel_isnt_blamed_for_another_launch(command: Any, edited: Edited, tmp_path: Path) -> None:
    kernels = edited("src/cuda/export.cc", "p.head_dim / kCombineDims, 0,", "p.head_dim / 32, 0,")
    combine = kernels / "src/cuda/combine.cuh"
    combine.write_text(combine.read_text().replace("(blockIdx.y) * kCombineDims", "(blockIdx.y) * 32"))
    emulator = compiler.build(kernels, "sm_90", tmp_path)
    host = build(KERNELS, backend="host", arch="sm_90", store=default_store()).directory
    done = command("emulate", "--emulator", emulator, "--against", host, "--cases", "page-16-6x256")
    assert done.code == 4 and done.verdict.startswith("verdict: unknown (not-emulated: "), done.lines
    assert "src/cuda/export.cc" in done.verdict and "output of row" in done.verdict
    assert done.json["outcome"] == "unknown"


def test_findings_without_a_known_launch_reject_nothing() -> None:
    wrong = CaseResult(name="one", findings=(Finding(kind=STUCK, order="in order", text="stuck"),))
    found = Emulation(results=(wrong,), wanted=1)
    assert results.decide(found, scope="here").word == "rejected"
    assert results.decide(found, scope="here", knows_launch=False).word == "unknown"
    fine = Emulation(results=(CaseResult(name="one"),), wanted=1)
    assert results.decide(fine, scope="here", knows_launch=False).word == "admitted"
