"""The tutorial and README's program run, and what they assert holds."""
from pathlib import Path

import notebook

ROOT = Path(__file__).resolve().parents[2]


def test_the_tutorial_runs():
    notebook.main(ROOT / "python" / "tutorial.ipynb")


def test_the_program_of_the_readme_runs(capsys):
    exec((ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out.startswith("ok (differences)")
