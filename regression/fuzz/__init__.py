"""Calls that nobody thought of: drawn at random, held against the truth and against each other."""
