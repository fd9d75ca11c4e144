"""The notebooks and README's program run, and what they assert holds."""
import json
import sys
from pathlib import Path

import notebook
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("drawn", [True, False])
def test_the_tutorial_runs(monkeypatch, drawn):
    if not drawn:
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    notebook.main(ROOT / "python" / "tutorial.ipynb")


def test_the_tutorial_has_stored_its_pictures():
    cells = json.loads((ROOT / "python" / "tutorial.ipynb").read_text())["cells"]
    stored = [form for cell in cells for output in cell.get("outputs", []) for form in output.get("data", {})]
    assert stored.count("image/png") >= 3 and stored.count("text/html") >= 6


def test_the_notebook_of_a_pretrained_model_runs(monkeypatch):
    monkeypatch.chdir(ROOT / "python")
    notebook.main("pretrained.ipynb")
    assert len(json.loads(Path("pretrained.ipynb").read_text())["cells"]) <= 25


def test_the_program_of_the_readme_runs(capsys):
    exec((ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out.startswith("ok (differences)")
