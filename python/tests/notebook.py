"""Runs the cells of a notebook, in order, in one namespace:  python notebook.py NOTEBOOK [--write]
With --write it stores what they print and show in the notebook."""
import ast
import base64
import contextlib
import io
import json
import sys


def shown(value):
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    for form, name in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
        picture = getattr(value, name, lambda: None)()
        if picture:
            data[form] = picture.splitlines(keepends=True)
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=80)
        data["image/png"] = base64.b64encode(picture.getvalue()).decode()
    return {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}


def run(source, names):
    """The outputs of a cell: what it prints, and the value of its last line."""
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if last:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    lines = printed.getvalue().splitlines(keepends=True)
    outputs = [{"output_type": "stream", "name": "stdout", "text": lines}] if lines else []
    return outputs + ([shown(value)] if value is not None else [])


def main(path, write=False):
    with open(path) as file:
        notebook = json.load(file)
    names = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = run("".join(cell["source"]), names)
    if write:
        with open(path, "w") as file:
            json.dump(notebook, file, indent=1, ensure_ascii=False)
            file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1], "--write" in sys.argv)
