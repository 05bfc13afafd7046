"""`regression emulate`: CUDA sources on an emulated GPU; what is rejected, and what can't be said."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from artifacts import Binary, Side
from evidence import reasons
from evidence.record import Subject
from fixtures import faults
from fixtures.errors import FixtureError
from grouped_attention import identity
from grouped_attention.build import build as build_kernel
from grouped_attention.build import default_store
from regression.emulation import cases, compiler, memory, process, results, subject
from regression.emulation.compiler import CompileError
from regression.emulation.emulator import Emulator
from regression.emulation.process import WorkerError
from regression.emulation.results import CRASHED, DIFFERS, STUCK, CaseResult, Emulation, Finding
from regression.emulation.subject import Emulated
from regression.target import TargetError

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels"
CONFTEST_COMMAND = Any
Compiled = Callable[..., Path]


def host(arch: str) -> Path:
    return build_kernel(KERNELS, backend="host", arch=arch, store=default_store()).directory


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("emulators")


@pytest.fixture
def faulty(tmp_path: Path, store: Path) -> Compiled:
    """An emulator of the kernels with a planted fault in them."""

    def compiled(name: str, arch: str) -> Path:
        return compiler.build(faults.plant(faults.find(name), KERNELS, tmp_path / name), arch, store)

    return compiled


def test_code_that_the_base_has_is_not_emulated(command: CONFTEST_COMMAND) -> None:
    made = build_kernel(KERNELS, backend="cuda", arch="sm_90", store=default_store()).directory
    done = command("emulate", "--artifact", made, "--base", made)
    assert "identical: " in done.verdict or "the base has the same CUDA code" in done.verdict, done.lines
    assert done.code in (0, 3) and len(done.lines) == 1


def test_the_kernels_give_the_hosts_bits(command: CONFTEST_COMMAND, store: Path) -> None:
    sound = compiler.build(KERNELS, "sm_90", store)
    names = "page-848-len-849-3x64,wild-6x256,empty-all-3x64"
    done = command("emulate", "--emulator", sound, "--against", host("sm_90"), "--cases", names)
    assert done.code == 3, done.lines
    assert "3 cases on an emulated GPU, each in two orders of threads: the host's bits, but" in done.verdict
    assert done.verdict.startswith("verdict: undecided (no-revision: cuda sm_90 (")
    assert (done.json["kind"], done.json["outcome"]) == ("emulation", "pass")
    assert [case["name"] for case in done.json["results"]["cases"]] == names.split(",")


@pytest.mark.parametrize(
    ("fault", "arch", "case", "code", "text"),
    [
        (
            "copies-not-awaited",
            "sm_80",
            "page-848-len-849-3x64",
            "emulation-differs",
            "max of split 0, row 0",
        ),
        ("barrier-around-max", "sm_70", "page-848-len-849-3x64", "emulation-differs", "output of row"),
        ("barrier-in-a-branch", "sm_90", "page-848-len-849-3x64", "emulation-differs", "output of row 0"),
        (
            "table-read-too-far",
            "sm_90",
            "page-16-len-33-3x64",
            "emulation-crashed",
            "signal 11 in split block",
        ),
    ],
)
def test_a_fault_in_the_cuda_sources_is_rejected(
    command: CONFTEST_COMMAND, faulty: Compiled, fault: str, arch: str, case: str, code: str, text: str
) -> None:
    emulator = faulty(fault, arch)
    done = command("emulate", "--emulator", emulator, "--against", host(arch), "--cases", case)
    assert done.code == 1, done.lines
    assert done.verdict.startswith(f"verdict: rejected ({code}: cuda {arch}")
    assert text in done.verdict
    assert done.json["outcome"] == "fail" and done.json["results"]["cases"][0]["findings"]


BARRIER = "  __syncthreads();\n  if (dim < kCombineDims) out"


@pytest.mark.parametrize(
    ("before", "code", "text"),
    [
        ("if (dim >= kCombineDims) return;", 3, "the host's bits"),
        ("if (dim % 2 == 0) __syncwarp();", 1, "at a barrier of the block"),
    ],
)
def test_a_barrier_waits_for_the_threads_that_have_not_ended(
    command: CONFTEST_COMMAND, tmp_path: Path, store: Path, before: str, code: int, text: str
) -> None:
    kernels = shutil.copytree(KERNELS, tmp_path / "kernels")
    combine = kernels / "src" / "cuda" / "combine.cuh"
    source = combine.read_text()
    assert BARRIER in source
    combine.write_text(source.replace(BARRIER, f"  {before}\n{BARRIER}"))
    emulator = compiler.build(kernels, "sm_90", store)
    done = command(
        "emulate", "--emulator", emulator, "--against", host("sm_90"), "--cases", "page-848-len-849-3x64"
    )
    assert done.code == code and text in done.verdict, done.lines
    assert (code == 1) == ("emulation-stuck" in done.verdict)


def test_a_wide_load_of_narrow_rows_is_rejected(
    command: CONFTEST_COMMAND, tmp_path: Path, store: Path
) -> None:
    kernels = shutil.copytree(KERNELS, tmp_path / "kernels")
    loader = kernels / "src" / "cuda" / "loader_registers.cuh"
    loader.write_text(loader.read_text().replace("if (a_.wide_loads) return", "return"))
    emulator = compiler.build(kernels, "sm_70", store)
    done = command(
        "emulate", "--emulator", emulator, "--against", host("sm_70"), "--cases", "pad-token-8-3x64"
    )
    assert done.code == 1
    assert "emulation-crashed" in done.verdict and "a misaligned access" in done.verdict


def test_sources_that_dont_compile_say_nothing(command: CONFTEST_COMMAND, tmp_path: Path) -> None:
    kernels = shutil.copytree(KERNELS, tmp_path / "kernels")
    source = kernels / "src" / "cuda" / "split.cuh"
    source.write_text(source.read_text() + "\n__nanosleep;\n")
    done = command("emulate", "--source", kernels, "--arch", "sm_70", "--against", host("sm_70"))
    assert done.code == 4
    assert done.verdict.startswith("verdict: unknown (not-emulated: the device sources don't compile")


def test_a_rejection_stands_though_another_architecture_cant_be_had(
    command: CONFTEST_COMMAND, faulty: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = {"arch": "sm_90", "host": next(host("sm_90").glob("*.so")), "dirty": ()}
    named = Subject(backend="cuda", arch="sm_90", sha256="0" * 64)

    def resolve(_options: object) -> Iterator[Emulated]:
        yield Emulated(emulator=faulty("barrier-around-max", "sm_90"), subject=named, **one)
        raise CompileError("not-emulated", "it doesn't compile")

    monkeypatch.setattr(subject, "resolve", resolve)
    done = command("emulate", "--cases", "page-848-len-849-3x64")
    assert done.code == 1 and "emulation-differs" in done.verdict


def test_what_cant_be_obeyed(command: CONFTEST_COMMAND, tmp_path: Path, store: Path) -> None:
    assert command("emulate", "--cases", "refused-page-24-3x64").code == 2
    assert command("emulate", "--source", tmp_path).code == 2
    sound = compiler.build(KERNELS, "sm_90", store)
    assert command("emulate", "--emulator", sound).code == 2  # without --against
    done = command("emulate", "--emulator", sound, "--against", host("sm_90"), "--arch", "sm_70")
    assert done.code == 2 and "is of sm_90" in done.verdict
    (tmp_path / "no.so").write_bytes(b"nothing")
    done = command("emulate", "--emulator", tmp_path / "no.so", "--against", host("sm_70"))
    assert done.code == 4 and "no-target" in done.verdict


def test_the_artifact_must_be_of_sources_that_are_here() -> None:
    def binary(digest: str | None) -> Binary:
        library = Path("library.so")
        return Binary(
            library=library, backend="cuda", arch="sm_90", sha256="", source_digest=digest, toolchain={}
        )

    side = Side(origin="elsewhere")
    here = identity.source_digest(identity.read_sources(KERNELS))
    with subject._sources(binary(here), side) as folder:
        assert (folder / "CMakeLists.txt").is_file()
    for digest in ("0" * 64, None):
        with pytest.raises(TargetError) as caught, subject._sources(binary(digest), side):
            pass
        assert caught.value.code == "no-sources" and "--source" in str(caught.value)


def test_an_artifact_of_another_backend_is_refused(command: CONFTEST_COMMAND) -> None:
    done = command("emulate", "--artifact", host("sm_70"))
    assert done.code == 4 and "holds host sm_70" in done.verdict


def test_a_compiled_emulator_is_kept_and_named_by_what_went_into_it(store: Path) -> None:
    first = compiler.build(KERNELS, "sm_90", store)
    assert compiler.build(KERNELS, "sm_90", store) == first
    assert compiler.build(KERNELS, "sm_70", store) != first
    assert Emulator(first).arch == "sm_90"


def test_which_cases_are_emulated() -> None:
    core, everything = cases.select("core"), cases.select("all")
    assert set(core) <= set(everything) and len(set(core)) == len(core)
    assert not [name for name in everything if name.startswith(("refused-", "midpoint-"))]
    assert {"far-31-3x64", "far-32-3x64", "pool-70000-3x64"} <= set(core)
    assert {"ring-3x64", "wild-6x256", "rows-8-6x256"} <= set(core)
    assert cases.select("wild-3x64,rows-2-3x64") == ("wild-3x64", "rows-2-3x64")
    for wrong in ("", "refused-page-24-3x64", "no-such-case"):
        with pytest.raises(FixtureError, match="no case that can be emulated"):
            cases.select(wrong)


def test_the_core_has_every_number_of_row_tiles_and_narrow_loads_of_both() -> None:
    calls = [cases.build(name) for name in cases.select("core")]
    tiles = {(call.q.shape[1], -(-call.q.shape[0] * call.q.shape[1] // 16)) for call in calls}
    assert tiles == {(6, 1), (6, 2), (6, 3), (3, 1), (3, 2)}
    assert {call.q.shape[1] for call in calls if call.k_cache.stride(1) % 16} == {3, 6}
    assert {call.q.shape[1] for call in calls if call.q.data_ptr() % 16} == {3, 6}


PAST = """
from regression.emulation import memory
import ctypes
data = memory.ending({count}, 4)
assert bytes((ctypes.c_ubyte * {count}).from_address(data.data_ptr())) == bytes({count})
ctypes.c_ubyte.from_address(data.data_ptr() + {count} + {past}).value
"""


@pytest.mark.parametrize(("past", "status"), [(-1, 0), (0, -signal.SIGSEGV)])
def test_memory_ends_behind_a_tensor(past: int, status: int) -> None:
    code = PAST.format(count=12, past=past)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=120, check=False)
    assert done.returncode == status


@pytest.mark.parametrize("name", ["pad-8-q-offset-1-3x64", "interleaved-pad-8-6x256", "base-16-v-pad-8-3x64"])
def test_guarded_tensors_lie_as_they_did(name: str) -> None:
    inputs = cases.build(name)
    copy = memory.guarded(inputs)
    for one, other in zip(inputs.tensors, copy.tensors, strict=True):
        assert one.stride() == other.stride() and torch.equal(one.view(other.dtype), other)
    assert copy.q.data_ptr() % 16 == inputs.q.data_ptr() % 16
    assert copy.k_cache.data_ptr() % 16 == 0 and copy.v_cache.data_ptr() % 16 == 0


def found(*kinds: str, wanted: int = 2, ran: int = 2) -> Emulation:
    wrong = tuple(Finding(kind=kind, order="threads in order", text=f"it {kind}") for kind in kinds)
    results = [CaseResult(name="first", findings=wrong), CaseResult(name="second")][:ran]
    return Emulation(results=tuple(results), wanted=wanted, stopped="second ran past 300 s")


def test_the_verdict_on_one_architecture() -> None:
    assert results.decide(found(), scope="cuda sm_90").word == "admitted"
    assert results.decide(found(DIFFERS, ran=1), scope="cuda sm_90").exit_code == 1
    several = results.decide(found(DIFFERS, STUCK, CRASHED), scope="cuda sm_90")
    assert [reason.code for reason in several.reasons] == [
        "emulation-crashed", "emulation-stuck", "emulation-differs",
    ]  # fmt: skip
    assert several.line() == (
        "verdict: rejected (emulation-crashed: cuda sm_90: 1 of 2 cases, first first, threads in order: "
        "it crashed)"
    )
    late = results.decide(found(ran=1), scope="cuda sm_90")
    assert late.line() == "verdict: unknown (time-limit: cuda sm_90: second ran past 300 s)"
    assert results.decide(found(wanted=0, ran=0), scope="cuda sm_90").word == "unknown"


def test_the_worst_architecture_decides() -> None:
    good, bad = (results.decide(found(*kinds), scope="cuda sm_70") for kinds in ((), (DIFFERS,)))
    late = results.decide(found(ran=1), scope="cuda sm_80")
    assert results.together([good, bad, late]).word == "rejected"
    assert results.together([good, late]).reasons == late.reasons
    assert results.together([good, good]).line().count("the host's bits") == 2


def test_every_code_is_explained() -> None:
    codes = {*results.CODES.values(), "emulation-same", "not-emulated", "no-sources", "no-compiler"}
    assert all(reasons.explain(code) for code in codes)


def said(begun: str | None) -> Any:
    return process._Said(results=(CaseResult(name="first"),), open=begun, other="")


def test_how_the_emulating_process_ended() -> None:
    crashed = process._read(
        -signal.SIGSEGV, said("second"), "signal 11 in split block (3, 0), thread 7", 3, 9
    )
    (finding,) = crashed.results[-1].findings
    assert (crashed.results[-1].name, finding.kind) == ("second", CRASHED)
    assert "memory was touched" in finding.text and "thread 7" in finding.text
    assert crashed.stopped == "1 cases were not run after that"
    late = process._read(None, said("second"), "", 3, 9)
    assert late.stopped == "second ran past 9 s, 2 cases have no result" and len(late.results) == 1
    for status, begun in (
        (-signal.SIGSEGV, None),
        (None, None),
        (-signal.SIGKILL, "second"),
        (1, "second"),
        (0, None),
    ):
        with pytest.raises(WorkerError, match="the emulating process"):
            process._read(status, said(begun), "why", 3, 9)


def test_a_worker_that_says_nothing_is_ended(store: Path) -> None:
    sound = compiler.build(KERNELS, "sm_90", store)
    (library,) = host("sm_90").glob("*.so")
    with pytest.raises(WorkerError, match="ran past its limit"):
        process.emulate(sound, library, ["rows-2-3x64"], limit_s=0.01)
    with pytest.raises(WorkerError, match="the emulator is of sm_90"):
        process.emulate(sound, next(host("sm_70").glob("*.so")), ["rows-2-3x64"])
