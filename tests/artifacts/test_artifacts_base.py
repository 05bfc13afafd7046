"""Finding the base: every way there is, and every named reason why there is none."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts import export, git
from artifacts.errors import ArtifactsError
from artifacts.resolve import Base, NoBase, resolve

Git = Callable[..., str]


def code(found: Base | NoBase) -> str:
    assert isinstance(found, NoBase), found
    assert found.text
    return found.code


def revision(found: Base | NoBase) -> str:
    assert isinstance(found, Base), found
    assert found.revision is not None
    return found.revision


def test_branch_is_compared_with_where_it_left_main(repository: Path, git: Git) -> None:
    fork = git(repository, "rev-parse", "HEAD")
    git(repository, "switch", "-q", "-c", "topic")
    git(repository, "commit", "-q", "--allow-empty", "-m", "topic")
    assert revision(resolve(root=repository)) == fork
    git(repository, "switch", "-q", "main")
    git(repository, "commit", "-q", "--allow-empty", "-m", "main goes on")
    assert revision(resolve(root=repository, candidate="topic")) == fork


def test_origin_main_comes_before_main(repository: Path, git: Git) -> None:
    first = git(repository, "rev-parse", "HEAD^")
    git(repository, "update-ref", "refs/remotes/origin/main", first)
    assert revision(resolve(root=repository)) == first


def test_main_itself_is_compared_with_its_parent(repository: Path, git: Git) -> None:
    assert revision(resolve(root=repository)) == git(repository, "rev-parse", "HEAD^")


def test_dirty_main_is_compared_with_its_commit(repository: Path, git: Git) -> None:
    assert revision(resolve(root=repository, dirty=True)) == git(repository, "rev-parse", "HEAD")


def test_first_commit_has_no_base(repository: Path, git: Git) -> None:
    first = git(repository, "rev-parse", "HEAD^")
    git(repository, "update-ref", "refs/heads/main", first)
    assert code(resolve(root=repository)) == "first-commit"


def test_no_commit_at_all(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    assert code(resolve(root=tmp_path)) == "no-commit"


def test_no_main(repository: Path, git: Git) -> None:
    git(repository, "branch", "-m", "main", "trunk")
    assert code(resolve(root=repository)) == "no-main"


def test_no_common_history(repository: Path, git: Git) -> None:
    git(repository, "switch", "-q", "--orphan", "island")
    git(repository, "commit", "-q", "--allow-empty", "-m", "island")
    assert code(resolve(root=repository)) == "no-common-history"


def test_shallow_clone(repository: Path, tmp_path: Path, git: Git) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", str(clone))
    found = resolve(root=clone)
    assert code(found) == "shallow-clone"
    assert isinstance(found, NoBase)
    assert "unshallow" in found.text


def test_no_git(tmp_path: Path) -> None:
    assert code(resolve(root=tmp_path)) == "no-git"


def test_a_folder_inside_a_repository_is_not_one(repository: Path) -> None:
    assert code(resolve(root=repository / "kernels")) == "no-git"


def test_git_missing(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert code(resolve(root=repository)) == "no-git"


def test_explicit_revision(repository: Path, git: Git) -> None:
    assert revision(resolve("main^", root=repository)) == git(repository, "rev-parse", "main^")


@pytest.mark.parametrize("spec", ["no-such-thing", "--all", "-x", "", "main^9"])
def test_bad_base_is_named(repository: Path, spec: str) -> None:
    found = resolve(spec, root=repository)
    assert code(found) == "bad-base"
    assert "no such file or folder" in found.text or "a folder without manifest.json" in found.text


def test_explicit_folder_and_library_need_no_git(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "x.so").write_bytes(b"x")
    for path in (tmp_path, tmp_path / "x.so"):
        found = resolve(str(path), root=tmp_path)
        assert isinstance(found, Base)
        assert found.path == path


def test_a_folder_called_like_a_branch_does_not_hide_it(
    repository: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "main").mkdir()
    monkeypatch.chdir(repository)
    assert revision(resolve("main", root=repository)) == git(repository, "rev-parse", "main")


def test_revision_export_is_clean(repository: Path) -> None:
    (repository / "kernels" / "src" / "host.cc").write_text("changed")
    (repository / "kernels" / "new.cc").write_text("new")
    with export.revision(repository, "HEAD") as source:
        assert "ANSWER" in (source / "src" / "host.cc").read_text()
        assert not (source / "new.cc").exists()
        kept = source
    assert not kept.exists()


def test_worktree_export_has_what_is_there(repository: Path) -> None:
    kernels = repository / "kernels"
    (kernels / "src" / "host.cc").write_text("changed")
    (kernels / "new.cc").write_text("new")
    (kernels / "x.ignored").write_text("ignored")
    (kernels / "src" / "common.cc").unlink()
    with export.worktree(repository) as source:
        assert (source / "src" / "host.cc").read_text() == "changed"
        assert (source / "new.cc").exists()
        assert not (source / "x.ignored").exists()
        assert not (source / "src" / "common.cc").exists()


def test_export_of_nothing_is_named(repository: Path, git: Git) -> None:
    with pytest.raises(ArtifactsError) as caught, export.revision(repository, "nowhere"):
        pass
    assert caught.value.code == "bad-revision"
    git(repository, "rm", "-q", "-r", "kernels")
    git(repository, "commit", "-q", "-m", "gone")
    for attempt in (lambda: export.revision(repository, "HEAD"), lambda: export.worktree(repository)):
        with pytest.raises(ArtifactsError) as caught, attempt():
            pass
        assert caught.value.code == "no-kernels"


def test_questions_do_not_write_to_the_repository(repository: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (repository / ".git").rglob("*")}
    git.changes(repository)
    git.files(repository, "kernels")
    resolve(root=repository)
    assert {path: path.stat().st_mtime_ns for path in (repository / ".git").rglob("*")} == before


def test_hooks_do_not_redirect_questions(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True, timeout=60)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert isinstance(resolve(root=repository), Base)
