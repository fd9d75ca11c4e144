"""What the stubs say: mypy and pyright in strict mode accept the tutorial, the example and the right lines,
and reject each wrong one."""
import ast
import inspect
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import softback as sb

HERE, PACKAGE = Path(__file__).resolve().parent, Path(sb.__file__).parent
LENIENT = {"reportUnusedExpression": False, "reportUnknownMemberType": "error"}
# A notebook does not annotate its own functions.
NOTEBOOK = dict.fromkeys(("reportMissingParameterType", "reportUnknownParameterType", "reportUnknownVariableType",
                          "reportUnknownArgumentType", "reportUnknownMemberType", "reportUnknownLambdaType"), False)


def mypy(path, folder, *options):
    """The lines with errors, and what is said."""
    pytest.importorskip("mypy", reason="pip could not install mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-incremental", *options, path], cwd=folder,
                          capture_output=True, text=True, env=os.environ | {"MYPYPATH": str(PACKAGE.parent)})
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return lines(done.stdout, r"^(.*?):(\d+): error: .*", path)


def pyright(path, folder, **options):
    pytest.importorskip("pyright", reason="pip could not install pyright")
    Path(folder, "checked.py").write_text(Path(path).read_text())
    Path(folder, "pyrightconfig.json").write_text(json.dumps(
        {"include": ["checked.py"], "typeCheckingMode": "strict", "extraPaths": [str(PACKAGE.parent)], **LENIENT, **options}))
    done = subprocess.run([sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(folder)],
                          capture_output=True, text=True)
    if "error" not in done.stdout and done.returncode:
        pytest.skip(f"pyright cannot run: {done.stderr[-200:]}")
    assert "checked.py" in done.stdout or "0 errors" in done.stdout, done.stdout
    return lines(done.stdout, r"^ *(.*?):(\d+):\d+ - error: .*", "checked.py")


def lines(output, pattern, path):
    return {int(found[2]): found[0] for found in re.finditer(pattern, output, re.M) if found[1].endswith(Path(path).name)}


@pytest.mark.parametrize("check", [mypy, pyright])
def test_right_lines_are_accepted(check, tmp_path):
    for path in (HERE / "types_right.py", HERE.parents[1] / "examples" / "gpt.py"):
        assert check(path, tmp_path) == {}


@pytest.mark.parametrize("check", [mypy, pyright])
def test_each_wrong_line_is_rejected(check, tmp_path):
    path = HERE / "types_wrong.py"
    text = path.read_text().splitlines()
    first = text.index("# From here on every line is wrong.") + 2
    wrong = set(range(first, len(text) + 1))
    found = set(check(path, tmp_path))
    assert len(wrong) == 32 and found == wrong, [text[n - 1] for n in found ^ wrong]


@pytest.mark.parametrize("check, options", [
    (mypy, ("--allow-untyped-defs", "--allow-untyped-calls", "--allow-any-generics", "--allow-redefinition")), (pyright, NOTEBOOK)])
def test_the_tutorial_is_accepted(check, options, tmp_path):
    cells = json.loads((HERE.parent / "tutorial.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    path = tmp_path / "tutorial.py"
    path.write_text("\n".join(code))
    assert (check(path, tmp_path, *options) if check is mypy else check(path, tmp_path, **options)) == {}


def arguments(node):
    return [a.arg for a in node.args.posonlyargs + node.args.args if a.arg != "weights"]


def test_the_stub_has_what_the_package_has():
    """Every public name with its parameters; names of options come from structs."""
    stub, seen = ast.parse((PACKAGE / "__init__.pyi").read_text()), set()
    owners = [(sb, stub.body), *((getattr(sb, c.name, None), c.body) for c in stub.body if isinstance(c, ast.ClassDef))]
    for owner, node in [(owner, node) for owner, body in owners if owner for node in body]:
        seen.add(getattr(node, "name", None))
        plain = isinstance(node, ast.FunctionDef) and not node.name.startswith("__") and len(node.args.posonlyargs) < 2
        found = getattr(owner, node.name) if plain else None
        if isinstance(found, types.FunctionType):
            wanted = [name for name, p in inspect.signature(found).parameters.items()
                      if p.kind is p.POSITIONAL_OR_KEYWORD and name != "weights"]
            first = int("self" in arguments(node))  # which methods may call otherwise
            assert arguments(node)[first:] == wanted[first:], (owner, node.name, wanted)
    public = {name for name, value in vars(sb).items() if not name.startswith("_") and not isinstance(value, types.ModuleType)}
    assert public - seen <= {"Random", "SGD", "Adam", "AdamW", "operation"}
