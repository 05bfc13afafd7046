"""What asv is taught: commits given by name, the environment as it is, a machine file of our own.

asv imports this through `plugins` of its configuration. A GPU machine's source tree often has no git, so
which commit is measured, and its date, come from the runner: here asv asks no repository.
"""

from __future__ import annotations

import os
import sys

from asv.environment import ExistingEnvironment
from asv.machine import MachineCollection
from asv.repo import Repo

from benchmarks.history.names import COMMIT, DATE_MS, MACHINE_FILE


class NamedRepo(Repo):  # type: ignore[misc]
    """One commit, whose hash and date the environment gives."""

    dvcs = "named"

    def __init__(self, url: str, mirror_path: str) -> None:
        del url, mirror_path
        self.commit, self.date_ms = os.environ[COMMIT], int(os.environ[DATE_MS])

    @classmethod
    def url_match(cls, url: str) -> bool:
        """Never chosen by address, only by `dvcs`."""
        del url
        return False

    def checkout(self, path: str, commit_hash: str) -> None:
        """Nothing: the product was built before."""

    def pull(self) -> None:
        """Nothing to fetch."""

    def get_date(self, commit_hash: str) -> int:
        """The commit's date, ms since 1970; 0 where nobody knew it."""
        del commit_hash
        return self.date_ms

    def get_hash_from_name(self, name: str) -> str:
        """The one commit."""
        del name
        return self.commit

    def get_name_from_hash(self, commit: str) -> None:
        """No commit has another name."""
        del commit

    def get_tags(self) -> dict[str, str]:
        """None are known."""
        return {}


class PreparedEnvironment(ExistingEnvironment):  # type: ignore[misc]
    """The Python that runs asv. Its name holds no path, so that results of all checkouts are one history."""

    tool_name = "prepared"

    @property
    def name(self) -> str:
        """Part of the result files' names."""
        return f"prepared-py{self.python}"

    @property
    def python(self) -> str:
        """Part of every graph's name."""
        return f"{sys.version_info[0]}.{sys.version_info[1]}"


def setup() -> None:
    """Let asv keep its machine file where the runner says, not in the user's home folder."""
    path = os.environ.get(MACHINE_FILE)
    if path:
        MachineCollection.get_machine_file_path = staticmethod(lambda: path)
