#!/usr/bin/env python3
"""Prints a notebook as Markdown for Sphinx, with the outputs that are stored in it:  docs/notebook.py NOTEBOOK"""
import base64
import json
import sys


def fenced(info, text):
    return f"`````{info}\n{text.rstrip()}\n`````\n"


def folded(summary, text):
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>\n"


def shown(output):
    """The richest form that a browser can show."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    for form in ("text/html", "image/svg+xml", "image/png", "text/plain"):
        if form in data:
            text = "".join(data[form])
            if form == "text/plain":
                return fenced("text", text)
            if form == "image/png":
                text = f'<img alt="" src="data:image/png;base64,{base64.b64encode(base64.b64decode(text)).decode()}">'
            return fenced("{raw} html", f'<div class="shown">{text}</div>')
    return ""


for n, cell in enumerate(json.load(open(sys.argv[1]))["cells"]):
    source = "".join(cell["source"])
    source = "# Notebook: " + source[2].lower() + source[3:] if n == 0 else source
    source = source if cell["cell_type"] == "markdown" else fenced("python", source)
    hidden = cell["metadata"].get("jupyter", {})
    print(folded("The code", source) if hidden.get("source_hidden") else source, end="\n\n")
    outputs = "\n".join(map(shown, cell.get("outputs", [])))
    print(folded("The result, after your prediction", outputs) if hidden.get("outputs_hidden") else outputs)
