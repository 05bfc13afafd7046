"""Loading libraries, workspaces, threads."""

import importlib
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import tvm_ffi
from kernel_cases import attend, plain

import grouped_attention as ga
from grouped_attention import manifest, workspace

KIND = "grouped_e4m3_fp32"
Host = Callable[[str], ga.Extension]

FOREIGN = """
#include <tvm/ffi/function.h>
#ifndef ABOUT
#define ABOUT R"({"backend": "host", "arch": "sm_70", "splits": 80, "instances": [[3, 64]]})"
#endif
static std::string describe() { return ABOUT; }
static void nothing() {}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(describe, describe);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(grouped_e4m3_fp32, nothing);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(grouped_e4m3_fp32_partials, nothing);
#ifdef VERSION
static int64_t version() { return VERSION; }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(precision_version, version);
#endif
"""


def compile_foreign(folder: Path, *flags: str) -> Path:
    """A library with this interface and nothing behind it."""
    source, library = folder / "foreign.cc", folder / f"foreign{len(flags)}{''.join(flags)}.so"
    source.write_text(FOREIGN)
    include = [
        f"-I{path}"
        for path in (tvm_ffi.libinfo.find_include_path(), tvm_ffi.libinfo.find_dlpack_include_path())
    ]
    command = ["g++", "-std=c++17", "-shared", "-fPIC", *flags, *include, str(source), "-o", str(library)]
    subprocess.run(command, check=True, timeout=120)
    return library


def test_what_a_library_says_of_itself(ext: ga.Extension) -> None:
    assert (ext.backend, ext.precision_version) == ("host", 4)
    assert ext.splits == {"sm_70": 80, "sm_80": 108, "sm_90": 132}[ext.arch]
    assert ext.sha256 == manifest.sha256_file(ext.library)
    assert ext.code_digest == manifest.read(ext.library.parent / "manifest.json").code_digest


def test_a_path_gives_exactly_that_library(host: Host, tmp_path: Path) -> None:
    source = host("sm_80").library
    copy = Path(shutil.copy(source, tmp_path / "copy.so"))
    loaded = ga.load(str(copy))
    assert (loaded.library, loaded.arch, loaded.code_digest) == (copy.resolve(), "sm_80", None)
    assert torch.equal(attend(loaded, plain()), attend(host("sm_80"), plain()))


def test_two_libraries_at_once(host: Host, tmp_path: Path) -> None:
    call = plain(heads=6, dim=256, tokens=1000)
    first, second = host("sm_70"), host("sm_90")
    twin = ga.load(shutil.copy(first.library, tmp_path / "twin.so"))
    a, b = attend(first, call), attend(second, call)
    assert not torch.equal(a, b)
    for _ in range(2):
        assert torch.equal(attend(twin, call), a)
        assert torch.equal(attend(second, call), b)
        assert torch.equal(attend(first, call), a)


def test_a_changed_library_is_refused(host: Host, tmp_path: Path) -> None:
    folder = shutil.copytree(host("sm_70").library.parent, tmp_path / "artifact")
    library = folder / host("sm_70").library.name
    library.chmod(0o644)
    with library.open("ab") as file:
        file.write(b"\0")
    with pytest.raises(RuntimeError, match=r"don't match manifest\.json"):
        ga.load(library)


def test_stale_libraries_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"no precision_version.*rebuild"):
        ga.load(compile_foreign(tmp_path))
    with pytest.raises(RuntimeError, match=r"precision_version 2, .*rebuild"):
        ga.load(compile_foreign(tmp_path, "-DVERSION=2"))
    assert ga.load(compile_foreign(tmp_path, "-DVERSION=3")).precision_version == 3


def test_a_library_that_describes_itself_wrongly_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"describe\(\) gave '{}' .*rebuild"):
        ga.load(compile_foreign(tmp_path, "-DVERSION=4", '-DABOUT="{}"'))


def test_missing_and_unknown(tmp_path: Path, host: Host) -> None:
    with pytest.raises(FileNotFoundError, match="no such library"):
        ga.load(tmp_path / "none.so")
    with pytest.raises(ValueError, match="no library for 'rocm'"):
        ga.load(backend="rocm")
    with pytest.raises(ValueError, match="no library for 'host', 'sm_75'"):
        ga.load(backend="host", arch="sm_75")
    with pytest.raises(ValueError, match="is for host, sm_70, not for"):
        ga.load(host("sm_70").library, arch="sm_90")


def test_without_a_gpu_the_default_is_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    extension = ga.load()
    assert (extension.backend, extension.arch) == ("host", "sm_70")
    with pytest.raises(RuntimeError, match="no GPU that this kernel runs on"):
        ga.load(backend="cuda")


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((7, 0), "sm_70"),
        ((7, 5), None),
        ((8, 0), "sm_80"),
        ((8, 9), "sm_80"),
        ((9, 0), "sm_90"),
        ((10, 0), None),
    ],
)
def test_the_library_of_a_gpu(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], expected: str | None
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert importlib.import_module("grouped_attention.load").arch_of_gpu() == expected


def test_workspaces_never_alias(host: Host) -> None:
    ext, other = host("sm_70"), host("sm_80")
    small = ext.workspace(KIND, heads=3, head_dim=64, device="cpu")
    held = [
        small,
        ext.workspace(KIND, heads=6, head_dim=256, device="cpu"),
        other.workspace(KIND, heads=3, head_dim=64, device="cpu"),
    ]
    buffers = [buffer for space in held for buffer in space.tensors]
    assert len({buffer.untyped_storage().data_ptr() for buffer in buffers}) == len(buffers)
    assert ext.workspace(KIND, heads=3, head_dim=64, device="cpu") is small
    assert all(buffer.data_ptr() % 16 == 0 and buffer.is_contiguous() for buffer in buffers)


def test_nothing_is_allocated_during_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    device = torch.device("cuda", 0)
    pool = workspace.Pool(splits=80)
    key = workspace.key_of(KIND, heads=3, head_dim=64, device=device, stream=5)
    with pytest.raises(RuntimeError, match=r"a workspace can't be allocated .* call ext\.workspace"):
        pool.get(key)
    with pytest.raises(RuntimeError, match="pass it as out="):
        workspace.refuse_capture(device, "the output", "pass it as out=")
    workspace.refuse_capture(torch.device("cpu"), "the output", "a CPU captures nothing")


def in_threads(count: int, body: Callable[[int], None]) -> None:
    failures: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(index: int) -> None:
        try:
            barrier.wait(timeout=60)
            body(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    if failures:
        raise failures[0]


def test_two_threads_share_a_library(host: Host) -> None:
    ext = host("sm_90")
    calls = [plain(seed=10 * index, tokens=900 + index) for index in range(2)]
    expected = [attend(ext, call) for call in calls]

    def repeat(index: int) -> None:
        for _ in range(30):
            assert torch.equal(attend(ext, calls[index]), expected[index])

    in_threads(2, repeat)


def test_the_number_of_threads_changes_no_bit(ext: ga.Extension) -> None:
    call, before = plain(tokens=2000), torch.get_num_threads()
    try:
        outputs = []
        for threads in (1, 2, 7):
            torch.set_num_threads(threads)
            outputs.append(attend(ext, call))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(output, outputs[0]) for output in outputs)


def test_flushing_subnormals_in_the_process_changes_no_bit(ext: ga.Extension) -> None:
    call = plain(tokens=300).but(v_scale=1e-36, softmax_scale=3.0)
    expected = attend(ext, call)
    acc, _ = ext.grouped_e4m3_fp32_partials(*call.tensors, **call.scales)
    assert ((acc != 0) & (acc.abs() < 2.0**-126)).any(), "or the test shows nothing"
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor can't flush subnormals")
    try:
        found, flushed = attend(ext, call), ext.grouped_e4m3_fp32_partials(*call.tensors, **call.scales)[0]
    finally:
        torch.set_flush_denormal(False)
    assert torch.equal(found, expected)
    assert torch.equal(flushed, acc)
