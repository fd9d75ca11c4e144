"""The tutorial runs, and what it asserts holds."""
from pathlib import Path

import notebook


def test_the_tutorial_runs():
    notebook.main(Path(__file__).resolve().parents[1] / "tutorial.ipynb")
