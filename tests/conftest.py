"""Settings of all tests."""

from hypothesis import settings

# Time is never asserted: a busy machine must not fail a test.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
