"""A sample of random_programs.py."""
from conftest import LONG
from random_programs import run


def test_random_programs_end_without_a_crash():
    assert run(30_000 if LONG else 400, workers=2) == []
