"""Isolated builds of a tiny project: identity, cache, clashes, tampering."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts import places
from grouped_attention import build as product
from grouped_attention.build import Artifact, BuildError, build
from grouped_attention.manifest import ManifestError, sha256_file


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def host(source: Path, store: Path, **options: str) -> Artifact:
    return build(source, backend="host", arch="sm_70", store=store, **options)


def names(store: Path) -> list[str]:
    return sorted(path.name for path in store.iterdir() if not path.name.startswith("."))


def test_manifest_says_what_was_built(project: Path, store: Path) -> None:
    artifact = host(project, store, revision="abc")
    manifest = artifact.manifest
    assert artifact.directory == store / manifest.digest
    assert (manifest.backend, manifest.arch, manifest.variant, manifest.revision) == (
        "host",
        "sm_70",
        "release",
        "abc",
    )
    assert manifest.sha256 == sha256_file(artifact.library)
    assert "g++" in manifest.toolchain["cxx"] or "clang" in manifest.toolchain["cxx"]
    assert set(manifest.toolchain) >= {"cxx", "cmake", "ninja", "tvm_ffi"}
    assert json.loads((artifact.directory / "manifest.json").read_text())["schema"] == 1
    assert "Linking" in (artifact.directory / "build.log").read_text()
    # The tiny library exports nothing, and that is said rather than made up.
    assert manifest.precision_version is None


def test_same_digest_is_taken_from_the_store(
    project: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = host(project, store)
    stamp = first.library.stat().st_mtime_ns
    monkeypatch.setattr(product, "_build_new", lambda *_: pytest.fail("compiled again"))
    assert host(project, store) == first
    assert first.library.stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    "change",
    ["include/answer.h", "src/common.cc", "CMakeLists.txt"],
)
def test_every_source_is_part_of_the_digest(project: Path, change: str) -> None:
    before = product.plan(project, backend="host", arch="sm_70").digest
    with (project / change).open("a") as stream:
        stream.write("\n")
    assert product.plan(project, backend="host", arch="sm_70").digest != before


def test_target_variant_and_toolchain_are_part_of_the_digest(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = {
        product.plan(project, backend="host", arch="sm_70").digest,
        product.plan(project, backend="host", arch="sm_90").digest,
        product.plan(project, backend="cuda", arch="sm_70").digest,
        product.plan(project, backend="host", arch="sm_70", variant="address").digest,
    }
    monkeypatch.setattr("grouped_attention.toolchain.package_version", lambda _: "0.0.1")
    digests.add(product.plan(project, backend="host", arch="sm_70").digest)
    assert len(digests) == 5


def test_what_is_not_compiled_is_not_part_of_the_digest(project: Path) -> None:
    before = product.plan(project, backend="host", arch="sm_70").digest
    (project / "README.md").write_text("other words")
    (project / "grouped_attention").mkdir()
    (project / "grouped_attention" / "load.py").write_text("pass")
    (project / ".hidden").write_text("x")
    assert product.plan(project, backend="host", arch="sm_70").digest == before


def test_code_is_the_same_in_another_folder(
    tmp_path: Path, store: Path, write_project: Callable[[Path], Path]
) -> None:
    one = host(write_project(tmp_path / "here"), store)
    other = host(write_project(tmp_path / "a much longer" / "place"), tmp_path / "another store")
    assert one.manifest.code_digest == other.manifest.code_digest
    assert one.manifest.sha256 == other.manifest.sha256


def test_code_follows_what_was_compiled_for_the_backend(project: Path, store: Path) -> None:
    before = host(project, store).manifest
    (project / "src" / "cuda.cc").write_text('extern "C" int other() { return 2; }\n')
    after = host(project, store).manifest
    assert before.source_digest != after.source_digest
    assert before.code_digest == after.code_digest
    (project / "include" / "answer.h").write_text("#define ANSWER 43\n")
    assert host(project, store).manifest.code_digest != before.code_digest


def test_flags_are_part_of_the_code(project: Path, store: Path) -> None:
    assert (
        host(project, store).manifest.code_digest
        != host(project, store, variant="debug").manifest.code_digest
    )


def test_environment_flags_do_not_leak_in(
    project: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXXFLAGS", "-DANSWER=7 -this-is-no-flag")
    assert "this-is-no-flag" not in (host(project, store).directory / "build.log").read_text()


def test_cuda_artifact_holds_cubin_and_log(project: Path, store: Path) -> None:
    artifact = build(project, backend="cuda", arch="sm_70", store=store)
    assert {path.suffix for path in artifact.directory.iterdir()} == {
        ".so",
        ".cubin",
        ".txt",
        ".json",
        ".log",
    }
    assert artifact.manifest.toolchain["nvrtc"]


def test_cuda_code_ignores_line_tables_but_not_code(
    project: Path, store: Path, make_elf: Callable[..., bytes]
) -> None:
    def digest(content: dict[str, bytes]) -> str:
        (project / "src" / "device.cubin").write_bytes(make_elf(content))
        return build(project, backend="cuda", arch="sm_70", store=store).manifest.code_digest

    code = {".text.k": b"code", ".nv.constant0.k": b"c"}
    plain = digest(code)
    assert digest({**code, ".debug_line": b"/some/folder/k.cu"}) == plain
    assert digest({**code, ".text.k": b"other"}) != plain
    assert digest({**code, ".nv.constant0.k": b"d"}) != plain


def test_cubin_that_is_not_in_the_library_is_refused(project: Path, store: Path) -> None:
    (project / "src" / "cuda.cc").write_text('extern "C" int answer() { return 1; }\n')
    with pytest.raises(BuildError, match="not the one inside the library"):
        build(project, backend="cuda", arch="sm_70", store=store)


def test_failed_compile_names_tail_and_kept_log(project: Path, store: Path) -> None:
    (project / "src" / "host.cc").write_text("this is no C++\n")
    with pytest.raises(BuildError, match="this is no C") as caught:
        host(project, store)
    assert caught.value.log is not None
    assert "this is no C" in caught.value.log.read_text()
    assert str(caught.value.log) in str(caught.value)
    assert names(store) == []
    assert list((store / ".work").iterdir()) == []


def test_a_second_failure_keeps_both_logs(project: Path, store: Path) -> None:
    (project / "src" / "host.cc").write_text("this is no C++\n")
    for _ in range(2):
        with pytest.raises(BuildError):
            host(project, store)
    assert len(list((store / ".failed").iterdir())) == 2


@pytest.mark.parametrize(("backend", "variant"), [("metal", "release"), ("host", "fast")])
def test_unknown_target_is_refused(project: Path, store: Path, backend: str, variant: str) -> None:
    with pytest.raises(BuildError, match="unknown"):
        build(project, backend=backend, arch="sm_70", store=store, variant=variant)


def test_folder_without_sources_is_refused(tmp_path: Path, store: Path) -> None:
    with pytest.raises(BuildError, match="no CMakeLists"):
        host(tmp_path, store)


def test_missing_compiler_says_so(project: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BuildError, match="no-such-compiler not found"):
        host(project, store)


@pytest.mark.parametrize("suffix", [".so", ".log"])
def test_changed_cached_file_is_refused_and_left_alone(project: Path, store: Path, suffix: str) -> None:
    artifact = host(project, store)
    (changed,) = artifact.directory.glob(f"*{suffix}")
    changed.chmod(0o644)
    changed.write_bytes(b"changed" + changed.read_bytes())
    with pytest.raises(ManifestError, match=changed.name) as caught:
        host(project, store)
    assert "delete" in str(caught.value)
    assert changed.read_bytes().startswith(b"changed")


def test_artifact_under_another_name_is_refused(project: Path, store: Path) -> None:
    artifact = host(project, store)
    (project / "include" / "answer.h").write_text("#define ANSWER 1\n")
    shutil.copytree(artifact.directory, store / product.plan(project, backend="host", arch="sm_70").digest)
    with pytest.raises(ManifestError, match="belongs to"):
        host(project, store)


def test_nothing_in_an_artifact_is_writable(project: Path, store: Path) -> None:
    assert all(path.stat().st_mode & 0o222 == 0 for path in host(project, store).directory.iterdir())


def test_default_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.delenv("KERNELGATE_HOME")
    assert product.default_store() == root / ".kernelgate" / "artifacts"
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path / "home"))
    assert product.default_store() == places.store() == tmp_path / "home" / "artifacts"
    monkeypatch.setenv("GROUPED_ATTENTION_STORE", str(tmp_path))
    assert product.default_store() == places.store() == tmp_path
