"""What the stubs say: mypy and pyright in strict mode accept the tutorial, the example and the right lines,
and reject each wrong one."""
import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import types
from functools import cache
from pathlib import Path

import pytest
import softback as sb
from softback._declarations import ALIASES

HERE, PACKAGE = Path(__file__).resolve().parent, Path(sb.__file__).parent
RIGHT, WRONG = (HERE / "types_right.py", HERE.parents[1] / "examples" / "gpt.py"), HERE / "types_wrong.py"
STRICT = {"include": ["*.py"], "typeCheckingMode": "strict", "extraPaths": [str(PACKAGE.parent)],
          "reportUnusedExpression": False, "reportUnknownMemberType": "error"}
# A notebook does not annotate its own functions.
NOTEBOOK = """\
# mypy: allow-untyped-defs, allow-untyped-calls, allow-any-generics, allow-redefinition
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What is checked: each program reads all of it once."""
    made = tmp_path_factory.mktemp("types")
    for path in (*RIGHT, WRONG):
        shutil.copy(path, made)
    for name in ("tutorial", "pretrained"):
        cells = json.loads((HERE.parent / f"{name}.ipynb").read_text())["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        (made / f"{name}.py").write_text(NOTEBOOK + "\n".join(code))
    (made / "pyrightconfig.json").write_text(json.dumps(STRICT))
    return made


@cache
def mypy(folder):
    """The lines with errors, and what is said: {(file, line): message}."""
    pytest.importorskip("mypy", reason="pip could not install mypy")
    files = sorted(path.name for path in folder.glob("*.py"))
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-incremental", *files], cwd=folder,
                          capture_output=True, text=True, env=os.environ | {"MYPYPATH": str(PACKAGE.parent)})
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return lines(done.stdout, r"^(.*?):(\d+): error: .*")


@cache
def pyright(folder):
    pytest.importorskip("pyright", reason="pip could not install pyright")
    done = subprocess.run([sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(folder)],
                          capture_output=True, text=True)
    if "error" not in done.stdout and done.returncode:
        pytest.skip(f"pyright cannot run: {done.stderr[-200:]}")
    return lines(done.stdout, r"^ *(.*?):(\d+):\d+ - error: .*")


def lines(output, pattern):
    return {(Path(found[1]).name, int(found[2])): found[0] for found in re.finditer(pattern, output, re.M)}


@pytest.mark.parametrize("check", [mypy, pyright])
def test_right_lines_the_example_and_the_tutorial_are_accepted(check, folder):
    assert [said for (name, _), said in check(folder).items() if name != WRONG.name] == []


@pytest.mark.parametrize("check", [mypy, pyright])
def test_each_wrong_line_is_rejected(check, folder):
    text = WRONG.read_text().splitlines()
    first = text.index("# From here on every line is wrong.") + 2
    wrong = set(range(first, len(text) + 1))
    found = {line for name, line in check(folder) if name == WRONG.name}
    assert len(wrong) == 34 and found == wrong, [text[n - 1] for n in found ^ wrong]


def arguments(node):
    return [a.arg for a in node.args.posonlyargs + node.args.args if a.arg != "weights"]


def test_the_stub_has_the_other_names_of_arguments_that_functions_take():
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    tensor = next(node for node in stub.body if getattr(node, "name", "") == "Tensor")
    for owner, body in ((sb, stub.body), (sb.Tensor, tensor.body)):
        typed = {}
        for node in body:
            if isinstance(node, ast.FunctionDef):
                typed.setdefault(node.name, set()).update(a.arg for a in node.args.kwonlyargs if a.arg in ALIASES)
        for name, found in vars(owner).items():
            if isinstance(found, types.FunctionType) and name in typed:
                assert typed[name] == {alias for alias, own in ALIASES.items() if own in inspect.signature(found).parameters}, (owner, name)
        assert typed["sum"] == {"dim", "keepdim", "keepdims"} and typed["split"] == {"dim"}


def test_the_stub_has_what_the_package_has():
    """Every public name with its parameters; names of options come from structs."""
    stub, seen = ast.parse((PACKAGE / "__init__.pyi").read_text()), set()
    owners = [(sb, stub.body), *((getattr(sb, c.name, None), c.body) for c in stub.body if isinstance(c, ast.ClassDef))]
    for owner, node in [(owner, node) for owner, body in owners if owner for node in body]:
        seen.add(getattr(node, "name", None))
        if isinstance(node, ast.FunctionDef) and any(a.arg in ALIASES and default is None for a, default in zip(node.args.kwonlyargs, node.args.kw_defaults)):
            continue  # with another name for an argument
        plain = isinstance(node, ast.FunctionDef) and not node.name.startswith("__") and len(node.args.posonlyargs) < 2
        found = getattr(owner, node.name) if plain else None
        if isinstance(found, types.FunctionType):
            wanted = [name for name, p in inspect.signature(found).parameters.items()
                      if p.kind is p.POSITIONAL_OR_KEYWORD and name != "weights"]
            first = int("self" in arguments(node))  # which methods may call otherwise
            assert arguments(node)[first:] == wanted[first:], (owner, node.name, wanted)
    public = {name for name, value in vars(sb).items() if not name.startswith("_") and not isinstance(value, types.ModuleType)}
    assert public - seen <= {"Random", "SGD", "Adam", "AdamW", "operation"}
