"""Candidate against base in time: random ABBA blocks of many captures, judged by a confidence sequence."""
