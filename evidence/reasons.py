"""Every reason code: what it means, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evidence import measured_reasons as measured


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """One line each."""

    meaning: str
    advice: str


def explain(code: str) -> Explanation | None:
    """The explanation of a code, None for an unknown one."""
    entry = CODES.get(code)
    return None if entry is None else Explanation(meaning=entry[0], advice=entry[1])


_VERDICT: Mapping[str, tuple[str, str]] = {
    "needs-gpu-records": (
        "The CUDA code isn't the base's, and no fresh record of a GPU is there for it.",
        "Run the named commands on a GPU machine, then evidence pack there and evidence import here.",
    ),
    "no-evidence": ("A needed measurement has no record.", "Run the named command."),
    "stale-evidence": (
        "There are records, but of another binary, instrument, inputs, base or run, or of too little.",
        "Run the named command again with this binary and this checkout.",
    ),
    "unreadable-record": (
        "A file in the record store is damaged, so evidence may be missing unseen.",
        "Look at the file; move it away, and measure again what it held.",
    ),
    "base-fails-too": (
        "Candidate and base both fail the replay.",
        "Check the machine (compiler, CPU) and the fixtures (python -m fixtures verify) before the change.",
    ),
    "dirty-tree": (
        "Files differ from the commit, so no revision names what was measured.",
        "Commit and run again.",
    ),
    "no-revision": (
        "No commit that is known here has the sources of what was measured.",
        "Commit them, and measure again from a checkout that has the commit.",
    ),
    "no-binary": (
        "A needed library wasn't built.",
        "Run artifacts build with all backends and architectures.",
    ),
    "nothing-built": ("The candidate has no library at all.", "Look at the build's errors."),
    "build-failed": ("A library failed to compile.", "Read the log that is named; it is kept."),
    "passed": ("The measurement was made, and passed.", "Nothing to do."),
}

_BASE: Mapping[str, tuple[str, str]] = {
    "no-git": (
        "The tree isn't a git repository, or git is missing: the candidate has no revision, and no base.",
        "Work in a clone, with git installed. To measure only, pass --base as an artifact folder or library.",
    ),
    "git-failed": ("git gave an error.", "Read its message; python -m artifacts doctor."),
    "shallow-clone": (
        "History was cut off at cloning: the base isn't here.",
        "git fetch --unshallow, or pass --base.",
    ),
    "first-commit": (
        "The candidate is the first commit: nothing came before it.",
        "Pass --base to name one.",
    ),
    "no-commit": ("The candidate has no commit yet.", "Commit first, or pass --base."),
    "no-main": ("Neither origin/main nor main is known here.", "git fetch origin main, or pass --base."),
    "no-common-history": ("Candidate and main share no commit.", "Pass --base to name what to compare with."),
    "bad-base": ("--base is neither a revision, nor an artifact folder or library.", "Correct it."),
    "bad-revision": ("There is no such revision here.", "Correct it, or fetch it."),
    "no-kernels": ("That revision has no kernels/ to build.", "Pass --base to name one that has."),
    "artifact-refused": (
        "An artifact folder doesn't match its manifest.",
        "In the store python -m artifacts clean DIGEST, elsewhere delete it; build or export it again.",
    ),
    "no-artifact": (
        "There is no artifact at that path.",
        "Correct it. python -m artifacts build --out FOLDER makes one; artifacts list shows the store.",
    ),
    "library-refused": (
        "A library can't be loaded, or doesn't say what it is.",
        "It must export describe().",
    ),
}

_MACHINERY: Mapping[str, tuple[str, str]] = {
    "usage": ("The command line can't be obeyed.", "See --help."),
    "machinery": ("A tool of the suite failed; nothing is said about the kernel.", "Read the message."),
    "bad-setting": (
        "$GROUPED_ATTENTION_CPU names code that doesn't exist or can't run on this processor.",
        "Unset it, or choose scalar, baseline or x86-64-v3.",
    ),
    "not-empty": ("The output folder holds something already.", "Choose a new folder."),
    "no-manifest": (
        "A library without a manifest can't be carried as an artifact.",
        "Pass the library itself.",
    ),
}

CODES: Mapping[str, tuple[str, str]] = {
    **_VERDICT,
    **_BASE,
    **measured.REPLAY,
    **measured.CONTRACT,
    **measured.STATIC,
    **measured.TIMING,
    **measured.MEMORY,
    **measured.FAULTS,
    **measured.EMULATION,
    **measured.HISTORY,
    **_MACHINERY,
}
