"""A sample of random_programs.py."""
import pytest
from conftest import LONG
from random_programs import run


@pytest.mark.parametrize("rich", (False, True))
def test_random_programs_end_without_a_crash(rich):
    assert run(15_000 if LONG else 200, workers=2, rich=rich) == []
