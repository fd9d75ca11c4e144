"""The examples of the Python reference, docs/examples.txt, print what they say."""
import doctest
import re
from pathlib import Path

import numpy as np
import pytest
import softback as sb

_, *PARTS = re.split(r"^(\w[\w.]*)\n", (Path(__file__).parents[2] / "docs/examples.txt").read_text(), flags=re.M)


@pytest.mark.parametrize("name, text", list(zip(PARTS[::2], PARTS[1::2])))
def test_an_example_of_the_reference_prints_what_it_says(name, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example, failures = doctest.DocTestParser().get_doctest(text, {"sb": sb, "np": np}, name, None, None), []
    assert doctest.DocTestRunner().run(example, out=failures.append).attempted > 0
    assert not failures, "".join(failures)
