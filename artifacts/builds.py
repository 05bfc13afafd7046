"""Candidate and base, built: from a revision, the work tree, a source folder, or taken as they are."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from artifacts import dirty, export, git, sides
from artifacts.claims import NO_REVISION
from artifacts.errors import ArtifactsError
from artifacts.places import PRODUCT, store
from artifacts.places import root as checkout
from artifacts.resolve import Base, NoBase, resolve
from artifacts.sides import Binary, Failure, Side
from grouped_attention import build as product
from grouped_attention.identity import binding_digest
from grouped_attention.manifest import ManifestError

ARCHITECTURES = ("sm_70", "sm_80", "sm_90")
BACKENDS = ("host", "cuda")
WORKTREE = "worktree"

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Targets:
    """What to build of one side."""

    backends: tuple[str, ...] = BACKENDS
    architectures: tuple[str, ...] = ARCHITECTURES
    variant: str = "release"

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """All (backend, arch)."""
        return tuple((backend, arch) for backend in self.backends for arch in self.architectures)


def candidate(
    revision: str = WORKTREE,
    targets: Targets | None = None,
    *,
    source: Path | None = None,
    root: Path | None = None,
    progress: Progress = print,
) -> Side:
    """The candidate's side: "worktree", a revision, or `source`: a kernels/ or artifact folder, a library.

    ArtifactsError when it can't be found or exported; a library that fails to build is in `failures`.
    """
    top, wanted = root or checkout(), targets or Targets()
    if source is not None:
        return _folder(source, wanted, progress)
    if revision == WORKTREE:
        return _worktree(top, wanted, progress)
    return _revision(revision, top, wanted, progress, clean=dirty.files(top, product=False))


def base(
    spec: str | None = None,
    targets: Targets | None = None,
    *,
    of: Side | None = None,
    root: Path | None = None,
    progress: Progress = print,
) -> Side:
    """The base's side for the candidate `of`; without one, `missing` says why. Never raises."""
    top = root or checkout()
    found = resolve(
        spec, root=top, candidate=(of.revision if of else None) or "HEAD", dirty=bool(of and of.dirty)
    )
    if isinstance(found, NoBase):
        return Side(origin="none", missing=(found.code, found.text))
    try:
        return _base(found, top, targets or Targets(), progress)
    except ArtifactsError as error:
        return Side(origin=found.how, missing=(error.code, error.text))


def identify(revision: str = WORKTREE, *, root: Path | None = None) -> Side:
    """The candidate's revision and dirty files; nothing is built."""
    top = root or checkout()
    if not git.is_repository(top):
        return Side(origin="folder", dirty=(NO_REVISION,))
    if revision == WORKTREE:
        head = git.commit(top, "HEAD")
        return Side(origin=WORKTREE, revision=head, dirty=dirty.files(top) if head else (NO_REVISION,))
    return Side(origin=f"revision {revision}", revision=git.commit(top, revision))


def _base(found: Base, root: Path, targets: Targets, progress: Progress) -> Side:
    progress(f"base: {found.how}" + (f" ({found.revision[:12]})" if found.revision else ""))
    if found.path is not None:
        # Of a base nothing is claimed, so its dirt decides nothing.
        return replace(_folder(found.path, targets, progress), origin=found.how, dirty=())
    assert found.revision is not None
    return _revision(found.revision, root, targets, progress, clean=())


def _folder(path: Path, targets: Targets, progress: Progress) -> Side:
    if (path / "CMakeLists.txt").is_file():
        return _filled(Side(origin=str(path), dirty=(NO_REVISION,)), path, targets, progress)
    return sides.from_path(path)


def _worktree(root: Path, targets: Targets, progress: Progress) -> Side:
    empty = identify(root=root)
    if not git.is_repository(root):
        progress("no git here: kernels/ is built as it lies, and can't be named by a revision")
        return _filled(empty, root / PRODUCT, targets, progress)
    with export.worktree(root) as source:
        return _filled(empty, source, targets, progress)


def _revision(name: str, root: Path, targets: Targets, progress: Progress, *, clean: tuple[str, ...]) -> Side:
    with export.revision(root, name) as source:
        empty = Side(origin=f"revision {name}", revision=git.commit(root, name), dirty=clean)
        return _filled(empty, source, targets, progress)


def _filled(empty: Side, source: Path, targets: Targets, progress: Progress) -> Side:
    package = source / "grouped_attention"
    if package.is_dir():
        empty = replace(empty, binding=binding_digest(package))
    results = [_one(source, pair, targets.variant, empty, progress) for pair in targets.pairs()]
    return replace(
        empty,
        binaries=tuple(result for result in results if isinstance(result, Binary)),
        failures=tuple(result for result in results if isinstance(result, Failure)),
    )


def _one(
    source: Path, target: tuple[str, str], variant: str, side: Side, progress: Progress
) -> Binary | Failure:
    backend, arch = target
    started = time.monotonic()
    # Only sources that are a commit's own may carry its name into the manifest.
    revision = None if side.dirty else side.revision
    try:
        artifact = product.build(
            source, backend=backend, arch=arch, store=store(), variant=variant, revision=revision
        )
    except product.BuildError as error:
        progress(f"{backend} {arch}: failed")
        return Failure(backend=backend, arch=arch, text=str(error), log=error.log)
    except ManifestError as error:
        progress(f"{backend} {arch}: refused")
        digest = product.plan(source, backend=backend, arch=arch, variant=variant).digest
        text = f"{error}{sides.remedy(store() / digest)}"
        return Failure(backend=backend, arch=arch, text=text, code="artifact-refused")
    progress(f"{backend} {arch}: {artifact.directory} ({time.monotonic() - started:.1f} s)")
    return sides.of_artifact(artifact)
