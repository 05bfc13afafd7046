"""Faults planted on purpose, and the gates that must catch them: `python -m regression faults`."""
