"""`python -m artifacts`: sides, sets, the store, the doctor."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import artifacts
from artifacts import builds, cli, doctor, places, shelf, sides
from artifacts.builds import Targets
from artifacts.errors import ArtifactsError
from artifacts.sides import Side
from grouped_attention import build as product
from grouped_attention.manifest import open_artifact

HOST = Targets(backends=("host",), architectures=("sm_70",))


def quiet(_: str) -> None:
    """No progress."""


@pytest.fixture
def in_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command line's own checkout is the test's repository."""
    monkeypatch.setattr("artifacts.builds.checkout", lambda: repository)
    monkeypatch.setattr("artifacts.resolve.checkout", lambda: repository)
    return repository


def test_worktree_revision_and_folder_give_the_same_library(repository: Path) -> None:
    worktree = builds.candidate(targets=HOST, root=repository, progress=quiet)
    revision = builds.candidate("HEAD", HOST, root=repository, progress=quiet)
    folder = builds.candidate(source=repository / "kernels", targets=HOST, root=repository, progress=quiet)
    assert worktree.binaries == revision.binaries == folder.binaries
    assert worktree.revision == revision.revision
    assert worktree.dirty == revision.dirty == ()
    assert folder.dirty == (builds.NO_REVISION,)


def test_dirty_candidate_has_no_revision_in_its_manifest(repository: Path) -> None:
    (repository / "kernels" / "include" / "answer.h").write_text("#define ANSWER 1\n")
    side = builds.candidate(targets=HOST, root=repository, progress=quiet)
    assert side.dirty == ("kernels/include/answer.h",)
    assert side.binaries[0].directory is not None
    assert open_artifact(side.binaries[0].directory).manifest.revision is None
    assert builds.candidate("HEAD", HOST, root=repository, progress=quiet).dirty == ()


def test_tree_without_git_can_be_built_but_not_named(project: Path) -> None:
    side = builds.candidate(targets=HOST, root=project.parent, progress=quiet)
    assert len(side.binaries) == 1
    assert (side.revision, side.dirty) == (None, (builds.NO_REVISION,))
    assert builds.base(targets=HOST, of=side, root=project.parent, progress=quiet).missing is not None


def test_base_is_built_from_its_revision(repository: Path, git: Callable[..., str]) -> None:
    (repository / "kernels" / "include" / "answer.h").write_text("#define ANSWER 1\n")
    git(repository, "commit", "-qam", "another answer")
    candidate = builds.candidate(targets=HOST, root=repository, progress=quiet)
    base = builds.base(targets=HOST, of=candidate, root=repository, progress=quiet)
    assert base.revision == git(repository, "rev-parse", "HEAD^")
    assert base.binaries[0].code_digest != candidate.binaries[0].code_digest


def test_base_that_cannot_be_had_is_named(repository: Path) -> None:
    side = builds.base("nowhere", HOST, root=repository, progress=quiet)
    assert side.missing is not None
    assert side.missing[0] == "bad-base"
    broken = repository.parent / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text("{}")
    side = builds.base(str(broken), HOST, root=repository, progress=quiet)
    assert side.missing is not None
    assert side.missing[0] == "artifact-refused"


def test_failed_build_is_part_of_the_side(repository: Path) -> None:
    (repository / "kernels" / "src" / "host.cc").write_text("no C++")
    side = builds.candidate(targets=HOST, root=repository, progress=quiet)
    assert side.binaries == ()
    assert side.failures[0].log is not None
    assert side.failures[0].log.exists()


def test_a_path_without_an_artifact_says_what_is_missing(tmp_path: Path) -> None:
    for path, what in ((tmp_path / "no", "no such folder"), (tmp_path, "holds no built.json")):
        with pytest.raises(ArtifactsError, match=rf"{what}.*build --out") as caught:
            sides.from_path(path)
        assert caught.value.code == "no-artifact"


def test_a_bug_of_ours_is_no_rejection(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shelf, "entries", lambda: 1 / 0)
    assert cli.main(["list"]) == 5
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_result_takes_the_place_of_a_result_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new" / "list.json"
    for _ in range(2):
        assert cli.main(["list", "--json", str(path)]) == 0 and isinstance(read(path), list)
    path.write_text(json.dumps([f"/store/{'0f' * 30}"]))
    assert cli.main(["list", "--json", str(path)]) == 0
    for mine in ("mine", '["alice"]', '{"artifacts": 1}', '[{"name": "x"}]', "[1]"):
        path.write_text(mine)
        assert cli.main(["list", "--json", str(path)]) == 2 and path.read_text() == mine
    assert "is no result of an earlier run" in capsys.readouterr().err


@pytest.mark.usefixtures("in_repository")
def test_a_changed_artifact_of_the_store_is_refused_with_its_remedy(tmp_path: Path) -> None:
    arguments = ["build", "--backend", "host", "--arch", "sm_70", "--json", str(tmp_path / "side.json")]
    assert cli.main(arguments) == 0
    (directory,) = (Path(item["directory"]) for item in read(tmp_path / "side.json")["artifacts"])
    library = next(directory.glob("*.so"))
    library.chmod(0o644)
    library.write_bytes(b"changed")
    remedy = f"python -m artifacts clean {directory.name[:12]}"
    with pytest.raises(ArtifactsError, match=remedy) as caught:
        sides.from_path(directory)
    assert caught.value.code == "artifact-refused"
    assert cli.main(arguments) == 5
    (failure,) = read(tmp_path / "side.json")["failed"]
    assert failure["code"] == "artifact-refused"
    assert library.name in failure["text"] and remedy in failure["text"]
    assert cli.main(remedy.split()[3:]) == 0 == cli.main(arguments)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_set_travels_as_a_folder(repository: Path, tmp_path: Path) -> None:
    side = builds.candidate(targets=Targets(architectures=("sm_70",)), root=repository, progress=quiet)
    sides.copy_set(side, tmp_path / "set")
    there = sides.from_path(tmp_path / "set")
    assert there.revision == side.revision
    assert [b.sha256 for b in there.binaries] == sorted_hashes(side)
    with pytest.raises(ArtifactsError, match="not empty"):
        sides.copy_set(side, tmp_path / "set")


def sorted_hashes(side: Side) -> list[str]:
    return [b.sha256 for b in sorted(side.binaries, key=lambda b: (b.backend, b.arch), reverse=False)]


@pytest.mark.parametrize("damage", ["library", "index", "missing", "extra"])
def test_damaged_set_is_refused(repository: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "set"
    sides.copy_set(builds.candidate(targets=HOST, root=repository, progress=quiet), folder)
    (library,) = folder.glob("*/*.so")
    if damage == "library":
        library.chmod(0o644)
        library.write_bytes(b"x")
    elif damage == "index":
        (folder / "built.json").write_text("{}")
    elif damage == "missing":
        library.parent.rename(tmp_path / "elsewhere")
    else:
        value = json.loads((folder / "built.json").read_text())
        value["artifacts"].append({**value["artifacts"][0], "arch": "sm_90"})
        (folder / "built.json").write_text(json.dumps(value))
    with pytest.raises(ArtifactsError) as caught:
        sides.from_path(folder)
    assert caught.value.code == "artifact-refused"


def test_build_command(in_repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "built.json"
    assert cli.main(["build", "--backend", "host", "--arch", "sm_70", "--json", str(out)]) == 0
    value = json.loads(out.read_text())
    assert value["artifacts"][0]["backend"] == "host"
    assert value["missing"] is None
    assert "host sm_70: " in capsys.readouterr().out
    assert cli.main(["list"]) == 0
    assert "host sm_70" in capsys.readouterr().out
    assert in_repository.exists()


def test_failing_build_command_gives_5(
    in_repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (in_repository / "kernels" / "src" / "host.cc").write_text("no C++")
    out = tmp_path / "built.json"
    assert cli.main(["build", "--backend", "host", "--arch", "sm_70", "--json", str(out)]) == 5
    assert "full log" in capsys.readouterr().err
    assert json.loads(out.read_text())["failed"][0]["log"]


def test_base_command_without_base_gives_4(
    in_repository: Path, git: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(in_repository, "branch", "-m", "main", "trunk")
    out = tmp_path / "base.json"
    assert cli.main(["base", "--json", str(out)]) == 4
    assert json.loads(out.read_text())["missing"]["code"] == "no-main"
    assert "no-main" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["build", "--variant", "fast"], ["clean"], ["clean", "--all", "abcdef"]]
)
def test_usage_gives_2(arguments: list[str]) -> None:
    assert cli.main(arguments) == 2


def test_unknown_target_is_named(in_repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", "--arch", "sm_61"]) == 2
    assert "sm_70" in capsys.readouterr().err
    assert in_repository.exists()


@pytest.mark.parametrize("verb", ["build", "base", "doctor", "list", "clean"])
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([verb, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


def test_list_names_a_tampered_artifact(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = product.build(project, backend="host", arch="sm_70", store=places.store())
    artifact.library.chmod(0o644)
    artifact.library.write_bytes(b"x")
    assert cli.main(["list"]) == 4
    assert "REFUSED" in capsys.readouterr().out


def test_clean_deletes_what_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = product.build(project, backend="host", arch="sm_70", store=places.store())
    assert cli.main(["clean", "0"]) == 2
    assert artifact.directory.exists()
    assert cli.main(["clean", artifact.manifest.digest[:8]]) == 0
    assert not artifact.directory.exists()
    assert shelf.entries() == ()
    assert cli.main(["clean", "--all"]) == 0
    assert "deleted" in capsys.readouterr().out


def test_doctor_says_yes_and_no(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = {check.name: check for check in doctor.checks()}
    assert found["compiler"].ok
    assert doctor.can_measure(tuple(found.values()))
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {check.name: check for check in doctor.checks()}
    assert not found["compiler"].ok
    assert "no-such-compiler" in found["compiler"].text
    assert not found["git"].ok
    assert not doctor.can_measure(tuple(found.values()))
    assert "can't" in doctor.table(tuple(found.values()))


def test_doctor_counts_an_old_nvrtc_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grouped_attention.toolchain.package_version", lambda _: "13.0.48")
    found = {check.name: check for check in doctor.checks()}
    assert not found["nvrtc"].ok
    assert "12" in found["nvrtc"].text


def test_doctor_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "doctor.json"
    assert cli.main(["doctor", "--json", str(out)]) == 0
    names: list[dict[str, Any]] = json.loads(out.read_text())
    assert {"gpu", "git", "disk", "nvrtc"} <= {entry["name"] for entry in names}
    assert "gpu" in capsys.readouterr().out


def test_module_runs() -> None:
    root = Path(artifacts.__file__).parents[1]
    environment = {"PYTHONPATH": f"{root}:{root / 'kernels'}", "PATH": "/usr/bin:/bin"}
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "artifacts", "--help"],
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
