"""What can be replayed, and what is said when it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from artifacts import ArtifactsError, Binary, Side, foreign
from artifacts.sides import copy_set, from_path
from regression import target
from regression.target import TargetError


def test_an_artifact_folder_and_its_library_are_the_same_target(artifact: Path) -> None:
    (library,) = artifact.glob("*.so")
    one, other = target.from_path(artifact), target.from_path(library)
    assert one.subject == other.subject
    assert one.subject.code_digest is not None
    assert (one.arch, one.device) == ("sm_70", "cpu")


def test_a_bare_library_is_known_by_its_hash_alone(artifact: Path, tmp_path: Path) -> None:
    (library,) = artifact.glob("*.so")
    copy = tmp_path / library.name
    copy.write_bytes(library.read_bytes())
    bare = target.from_path(copy)
    assert (bare.subject.code_digest, bare.subject.revision, bare.subject.dirty) == (None, None, None)
    assert bare.subject.sha256 == target.from_path(artifact).subject.sha256


def test_a_library_under_address_sanitizer_is_sent_to_memcheck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_path: Path) -> tuple[str, str]:
        raise ArtifactsError(
            "library-refused", "x.so (==7==ASan runtime does not come first in ... LD_PRELOAD)"
        )

    (tmp_path / "library.so").write_bytes(b"")
    monkeypatch.setattr(foreign, "target", refused)
    with pytest.raises(
        TargetError, match="which only sanitizer memcheck takes: give its plain build"
    ) as caught:
        target.from_path(tmp_path / "library.so")
    assert caught.value.code == "library-refused" and "LD_PRELOAD" not in str(caught.value)


def test_of_a_folder_of_several_one_is_chosen(artifact: Path, tmp_path: Path) -> None:
    side = from_path(artifact)
    several = Side(origin="test", binaries=side.binaries)
    copy_set(several, tmp_path / "set")
    assert target.from_path(tmp_path / "set", arch="sm_70").arch == "sm_70"
    with pytest.raises(TargetError, match="holds host sm_70: choose one"):
        target.from_path(tmp_path / "set", arch="sm_90")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("no_colon", "not of the form"),
        ("no_such_module_here:f", "PYTHONPATH"),
        ("regression.target:no_such_function", "no_such_function"),
    ],
)
def test_a_callable_that_is_not_there_is_named(name: str, complaint: str) -> None:
    with pytest.raises(TargetError, match=complaint):
        target.from_callable(name, backend="host", arch="sm_70")


def test_a_module_that_ends_the_process_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_that_leaves.py").write_text("raise SystemExit(0)")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TargetError, match="SystemExit"):
        target.from_callable("module_that_leaves:f", backend="host", arch="sm_70")


def test_a_callable_is_known_by_its_name_and_source() -> None:
    one = target.from_callable("regression.target:built", backend="host", arch="sm_70")
    other = target.from_callable("regression.target:from_path", backend="host", arch="sm_90")
    assert one.subject.sha256 != other.subject.sha256
    assert other.arch == "sm_90"


def test_a_cuda_library_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch, artifact: Path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    binary = Binary(library=artifact / "x.so", backend="cuda", arch="sm_90", sha256="0" * 64, toolchain={})
    side = Side(origin="test", binaries=(binary,))
    with pytest.raises(TargetError, match="needs a GPU") as caught:
        target._only(side, backend="cuda", arch="sm_90")
    assert caught.value.code == "no-gpu"
    with pytest.raises(TargetError, match="no GPU"):
        target.default_arch("cuda")
    assert (target.default_backend(), target.default_arch("host")) == ("host", "sm_70")


@pytest.mark.parametrize(("capability", "arch"), [((7, 0), "sm_70"), ((8, 6), "sm_80"), ((9, 0), "sm_90")])
def test_the_gpu_chooses_the_architecture(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], arch: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert (target.default_backend(), target.default_arch("cuda")) == ("cuda", arch)


def test_what_has_no_base_or_failed_to_build_keeps_its_reason() -> None:
    missing = Side(origin="none", missing=("shallow-clone", "history was cut off"))
    with pytest.raises(TargetError, match="cut off") as caught:
        target._only(missing, backend="host", arch="sm_70")
    assert caught.value.code == "shallow-clone"
