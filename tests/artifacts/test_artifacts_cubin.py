"""The ELF reader, on files made up here and on cubins of a real compiler."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grouped_attention import cubin, cubin_info

MakeElf = Callable[..., bytes]
SAME_FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
COMPILER = Path(__file__).parents[2] / "kernels" / "cmake" / "nvrtc_compile.py"
KERNEL = """
extern "C" __global__ void __launch_bounds__(256) scale(float* p, float f) { p[threadIdx.x] *= f; }
extern "C" __global__ void unbounded(float* p) { p[threadIdx.x] += 1.0f; }
"""


def compile_cubin(folder: Path, name: str, source: str, arch: str = "sm_70") -> bytes:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(source)
    out = folder / "k.cubin"
    options = ["--arch", arch, "--cubin", str(out), "--log", str(folder / "log")]
    command = [sys.executable, str(COMPILER), str(folder / name), *options]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return out.read_bytes()


def test_sections_come_back(make_elf: MakeElf) -> None:
    content = {".text.k": b"\1\2\3", ".nv.shared.k": 4096, ".empty": b""}
    found = {s.name: (s.data, s.size_bytes) for s in cubin.sections(make_elf(content))}
    assert found[".text.k"] == (b"\1\2\3", 3)
    assert found[".nv.shared.k"] == (b"", 4096)
    assert found[".empty"] == (b"", 0)


@SAME_FIXTURE
@given(
    content=st.dictionaries(
        st.sampled_from([".text.a", ".text.b", ".nv.constant0.a", ".debug_line", ".strtab", ".note"]),
        st.binary(max_size=40),
        min_size=1,
    )
)
def test_digest_depends_on_the_deciding_sections_alone(make_elf: MakeElf, content: dict[str, bytes]) -> None:
    deciding = {name: data for name, data in content.items() if name.startswith((".text", ".nv"))}
    if not any(name.startswith(".text") for name in deciding):
        with pytest.raises(cubin.CubinError, match="no code"):
            cubin.digest(make_elf(content))
        return
    backwards = dict(reversed(content.items()))
    assert (
        cubin.digest(make_elf(content))
        == cubin.digest(make_elf(deciding))
        == cubin.digest(make_elf(backwards))
    )
    name = next(iter(deciding))
    assert cubin.digest(make_elf({**deciding, name: deciding[name] + b"x"})) != cubin.digest(
        make_elf(deciding)
    )


def test_shared_size_decides_though_it_has_no_bytes(make_elf: MakeElf) -> None:
    small, large = (make_elf({".text.k": b"x", ".nv.shared.k": size}) for size in (16, 32))
    assert cubin.digest(small) != cubin.digest(large)


@SAME_FIXTURE
@given(data=st.binary(max_size=300))
def test_noise_is_refused(data: bytes) -> None:
    with pytest.raises(cubin.CubinError):
        cubin.sections(data)


@SAME_FIXTURE
@given(cut=st.integers(0, 10_000), at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_damaged_files_never_crash(make_elf: MakeElf, cut: int, at: int, byte: int) -> None:
    whole = make_elf({".text.k": b"code" * 8, ".nv.info": b"\4\x05\4\0abcd", ".symtab": bytes(24)})
    damaged = bytearray(whole)
    damaged[at % len(whole)] = byte
    for data in (bytes(damaged), whole[: cut % len(whole)]):
        try:
            cubin.digest(data)
            cubin.max_threads(data)
        except cubin.CubinError:
            pass


def test_symbols_count_by_name_not_by_place() -> None:
    one = struct.pack("<BBHII", 4, 0x2F, 8, 1, 40)
    moved = struct.pack("<BBHII", 4, 0x2F, 8, 2, 40)
    assert cubin_info.stable(one, ("", "k")) == cubin_info.stable(moved, ("", "other", "k"))
    assert cubin_info.stable(one, ("", "k")) != cubin_info.stable(one, ("", "other"))
    more = struct.pack("<BBHII", 4, 0x2F, 8, 1, 41)
    assert cubin_info.stable(one, ("", "k")) != cubin_info.stable(more, ("", "k"))


@given(data=st.binary(max_size=60), symbols=st.lists(st.text(max_size=3), max_size=3))
def test_records_that_cannot_be_read_stay_as_they_are(data: bytes, symbols: list[str]) -> None:
    try:
        cubin_info.attributes(data)
    except ValueError:
        assert cubin_info.stable(data, symbols) == data


def test_real_cubins(tmp_path: Path) -> None:
    one = compile_cubin(tmp_path / "a", "k.cu", KERNEL)
    other = compile_cubin(tmp_path / "bb", "other.cu", f"// a comment\n\n{KERNEL}")
    assert one != other
    assert cubin.digest(one) == cubin.digest(other)
    assert set(cubin.code_bytes(one)) == {"scale", "unbounded"}
    assert cubin.max_threads(one) == {"scale": 256, "unbounded": None}
    assert cubin.digest(compile_cubin(tmp_path / "c", "k.cu", KERNEL.replace("*=", "+="))) != cubin.digest(
        one
    )
    assert cubin.digest(compile_cubin(tmp_path / "d", "k.cu", KERNEL.replace("256", "128"))) != cubin.digest(
        one
    )
    assert cubin.digest(compile_cubin(tmp_path / "e", "k.cu", KERNEL, "sm_90")) != cubin.digest(one)
