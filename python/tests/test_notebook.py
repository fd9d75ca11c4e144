"""The notebooks and README's program run, and what they assert holds."""
import json
from pathlib import Path

import notebook

ROOT = Path(__file__).resolve().parents[2]


def test_the_tutorial_runs():
    notebook.main(ROOT / "python" / "tutorial.ipynb")


def test_the_notebook_of_a_pretrained_model_runs(monkeypatch):
    monkeypatch.chdir(ROOT / "python")
    notebook.main("pretrained.ipynb")
    assert len(json.loads(Path("pretrained.ipynb").read_text())["cells"]) <= 25


def test_the_program_of_the_readme_runs(capsys):
    exec((ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out.startswith("ok (differences)")
