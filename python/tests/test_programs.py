"""A sample of random_programs.py, of which long runs are made by hand."""
from random_programs import run


def test_random_programs_end_without_a_crash():
    assert run(400, workers=2) == []
