"""Settings of all tests."""

import pytest
from hypothesis import settings

# Time is never asserted: a busy machine must not fail a test.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this checkout were committed: edits must not fail tests that ask for an admission."""
    monkeypatch.setattr("artifacts.dirty.of_instrument", lambda _root=None: ())
    monkeypatch.setattr(
        "artifacts.claims.revision_of", lambda _digest, stated, _root=None: stated or "c" * 40
    )
