"""The build of the CUDA kernels: cubins without a GPU, what they cost, and the same bytes in any folder."""

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import torch

import grouped_attention as ga
from grouped_attention import cubin

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
SCRIPT = KERNELS / "cmake" / "nvrtc_compile.py"
ARCHITECTURES = ("sm_70", "sm_80", "sm_90")
NAMES = {
    *[f"grouped_split_6x256_{tiles}" for tiles in (1, 2, 3)],
    *[f"grouped_split_3x64_{tiles}" for tiles in (1, 2)],
    "grouped_combine_6x256",
    "grouped_combine_3x64",
}
THREADS = 256
REGISTERS_OF_A_MULTIPROCESSOR = 65536
STATIC_SHARED_BYTES = 48 * 1024


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What the assembler reports about one kernel."""

    registers: int
    stack_bytes: int
    spill_bytes: int
    static_shared_bytes: int


@dataclass(frozen=True, kw_only=True)
class Compiled:
    cubin: bytes
    log: str


def compile_cubin(folder: Path, arch: str, *, kernels: Path = KERNELS) -> Compiled:
    folder.mkdir(parents=True, exist_ok=True)
    code, log = folder / "kernels.cubin", folder / "kernels.txt"
    command = [
        sys.executable, str(SCRIPT), str(kernels / "src" / "cuda" / "kernels.cu"),
        "--headers", str(kernels / "include"), "--headers", str(kernels / "src"),
        "--arch", arch, "--cubin", str(code), "--log", str(log),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return Compiled(cubin=code.read_bytes(), log=log.read_text())


def costs(log: str) -> dict[str, Costs]:
    found = {}
    for part in log.split("Compiling entry function ")[1:]:
        stack, stores, loads = map(
            int, re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", part)
        )
        registers, shared = re.search(r"Used (\d+) registers", part), re.search(r"(\d+) bytes smem", part)
        name = re.match(r"'(\w+)'", part)
        assert registers and name
        found[name[1]] = Costs(
            registers=int(registers[1]),
            stack_bytes=stack,
            spill_bytes=stores + loads,
            static_shared_bytes=int(shared[1]) if shared else 0,
        )
    return found


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Compiled]:
    return cache(lambda arch: compile_cubin(tmp_path_factory.mktemp(arch), arch))


@pytest.fixture(scope="session")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nvrtc_compile", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_kernel_is_there_and_nothing_spills(compiled: Callable[[str], Compiled], arch: str) -> None:
    found = costs(compiled(arch).log)
    assert set(found) == NAMES
    for name, each in found.items():
        assert (each.stack_bytes, each.spill_bytes) == (0, 0), name
        assert 0 < each.registers * THREADS <= REGISTERS_OF_A_MULTIPROCESSOR, name
        assert each.static_shared_bytes <= STATIC_SHARED_BYTES, name


def test_a_spill_is_seen(compiled: Callable[[str], Compiled]) -> None:
    log = compiled("sm_90").log.replace("0 bytes spill stores", "8 bytes spill stores", 1)
    assert [each.spill_bytes for each in costs(log).values() if each.spill_bytes] == [8]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_another_folder_gives_the_same_bytes(
    compiled: Callable[[str], Compiled], tmp_path: Path, arch: str
) -> None:
    kernels = shutil.copytree(KERNELS, tmp_path / "elsewhere" / "with some space" / "kernels")
    assert compile_cubin(tmp_path / "out", arch, kernels=kernels).cubin == compiled(arch).cubin


def test_another_instruction_gives_another_code_section(
    compiled: Callable[[str], Compiled], tmp_path: Path
) -> None:
    kernels = shutil.copytree(KERNELS, tmp_path / "kernels")
    source = kernels / "src" / "cuda" / "combine.cuh"
    source.write_text(
        source.read_text().replace("Fraction total{0.0f, 0.0f};", "Fraction total{0.0f, 1.0f};")
    )
    changed = compile_cubin(tmp_path / "out", "sm_90", kernels=kernels)
    assert code(changed.cubin).keys() == code(compiled("sm_90").cubin).keys()
    differing = {
        name for name, data in code(changed.cubin).items() if code(compiled("sm_90").cubin)[name] != data
    }
    assert differing == {".text.grouped_combine_6x256", ".text.grouped_combine_3x64"}


def code(data: bytes) -> dict[str, bytes]:
    return {each.name: each.data for each in cubin.sections(data) if each.name.startswith(".text.")}


def test_nothing_of_this_machine_is_in_a_cubin(compiled: Callable[[str], Compiled]) -> None:
    for part in (str(KERNELS), str(Path.home()), sys.prefix):
        assert part.encode() not in compiled("sm_70").cubin


def test_a_source_that_does_not_compile_leaves_no_files(
    script: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "broken.cu"
    source.write_text('extern "C" __global__ void broken() { undeclared(); }')
    outputs = [tmp_path / "out.cubin", tmp_path / "out.txt"]
    arguments = [str(source), "--arch", "sm_90", "--cubin", str(outputs[0]), "--log", str(outputs[1])]
    assert script.main(arguments) == 1
    assert "undeclared" in capfd.readouterr().err
    assert not any(path.exists() for path in outputs)


def test_a_missing_compiler_is_named(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.util, "find_spec", lambda _: None)
    with pytest.raises(script.NvrtcError, match=r"pip install nvidia-cuda-nvrtc-cu12==12\.8\.93"):
        script.open_library()


def test_another_release_line_is_refused(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.Nvrtc, "version", lambda _: (13, 0))
    with pytest.raises(script.NvrtcError, match=r"NVRTC 13\.0 found"):
        script.open_library()


@pytest.mark.skipif(torch.cuda.is_available(), reason="shows what happens without a GPU")
def test_the_library_loads_without_cuda_and_says_what_is_missing() -> None:
    ext = ga.load(backend="cuda", arch="sm_90")
    assert (ext.backend, ext.arch, ext.splits, ext.precision_version) == ("cuda", "sm_90", 132, 4)
    with pytest.raises(RuntimeError, match="needs an NVIDIA GPU"):
        ext.functions["prepare"](0)
    with pytest.raises(RuntimeError, match="needs an NVIDIA GPU"):  # again: the first failure isn't kept
        ext.functions["prepare"](0)
    q, cache = torch.zeros(2, 6, 256, dtype=torch.float16), torch.zeros(1, 16, 1, 256, dtype=torch.uint8)
    table, lens = torch.zeros(1, 1, dtype=torch.int32), torch.ones(2, dtype=torch.int32)
    with pytest.raises((RuntimeError, ValueError), match="cuda"):
        ext.grouped_e4m3_fp32(q, cache, cache, table, lens, softmax_scale=1.0)
