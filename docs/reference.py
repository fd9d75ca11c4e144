#!/usr/bin/env python3
"""Writes the reference of C and of Python for Sphinx:  docs/reference.py PACKAGE FOLDER

The declarations and their comments are read as python/generate.py reads them, from the public headers; PACKAGE is
what it has written. FOLDER gets a page for each header and one for Python. Each function leads to its source, its plain
kernel, lessons and examples that use it, and its name in the other language."""
import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "python"))
from generator import headers  # noqa: E402

ROOMS = {"tensor": "Tensors", "autograd": "Automatic differentiation", "ops": "Operations", "nn": "Layers and training",
         "models": "Models"}
LABEL = re.compile(r"([A-Z]\w+)(?: {2,}|\n)")  # "Shape     a (n) -> y": a labelled line of a comment


def read(*patterns):
    return {str(path.relative_to(ROOT)): path.read_text() for pattern in patterns for path in sorted(ROOT.glob(pattern))}


def file(path, line=None):
    """A link to a page that shows a file."""
    return f":download:`{path} </{path}{f'#L-{line}' if line else ''}>`"


class Where:
    """Where the names of C are defined, explained and used."""

    def __init__(self, package):
        self.sources, self.lessons, self.examples, self.python = {}, defaultdict(list), defaultdict(list), {}
        for path, text in read("tensor/*.c", "autograd/*.c", "ops/*.c", "nn/*.c", "models/**/*.c").items():
            for found in re.finditer(r"^[a-z][^\n;={}]*?\b(sb_\w+)\([^;{]*\)\n\{", text, re.M):
                self.sources[found[1]] = path, text.count("\n", 0, found.start()) + 1
        self.plain = {Path(path).stem: path for path in read("ops/plain/*.c")}
        for path, text in read("teach/lessons/*.md").items():
            title = re.match(r"# (.*)", text)[1]
            own = [text, *read(path.replace(".md", ".c"), path.replace("lessons/", "lessons/solutions/").replace(".md", ".c")).values()]
            for name in set(re.findall(r"\b(?:sb_\w+|ops/plain/\w+\.c)", " ".join(own))):
                self.lessons[name].append(f":doc:`{title} </{path[:-3]}>`")
        for path, text in read("examples/*.c*", "tests/outside/*.c").items():
            for name in set(re.findall(r"\bsb_\w+", text)):
                self.examples[name].append(file(path))
        for owner, found in functions_of(ast.parse((package / "_functions.py").read_text())):
            for name in re.findall(r"_c\.(sb_\w+)\(", ast.unparse(found)):
                self.python.setdefault(name, owner + found.name)

    def kernel(self, name):
        path = self.sources.get(name, ("", 0))[0]
        stem = name.removeprefix("sb_")
        return path.startswith("ops/") and (self.plain.get(stem) or self.plain.get(Path(path).stem))

    def links(self, names):
        """One line of links for functions that share a comment."""
        found = defaultdict(dict)
        for name in names:
            if name in self.python:
                found["Python"][name] = f":py:obj:`{self.python[name]}`"
            if kernel := self.kernel(name):
                found["Loops to be read"][kernel] = file(kernel)
            if name in self.sources:
                path, line = self.sources[name]
                found["Source"].setdefault(path, file(path, line))
            found["Lesson"].update((link, link) for link in self.lessons[name] + (self.lessons[kernel] if kernel else []))
            found["Example"].update((link, link) for link in self.examples[name][:3])
        return " · ".join(f"{kind} {', '.join(links.values())}" for kind, links in found.items() if links)


def functions_of(tree):
    """Functions and methods of a module, each with the prefix of its class."""
    for top in tree.body:
        for node in top.body if isinstance(top, ast.ClassDef) else [top]:
            if isinstance(node, ast.FunctionDef) and (node.name[0] != "_" or node.name in ("__init__", "__call__")):
                yield (top.name + "." if isinstance(top, ast.ClassDef) else ""), node


def escape(text):
    """Prose without markup, in which names of C are code."""
    found = r'`(\w+)`|(?<![\w"/])((?:sb|SB)_\w+(?:\(\))?)(?![\w*])|[\\*_|`]'
    return re.sub(found, lambda m: f"``{m[1] or m[2]}``\\ " if m[1] or m[2] else "\\" + m[0], text)


def is_laid_out(text):
    """Whether spaces have a meaning."""
    return any(re.search(r"\S {2,}\S|^ {2,}\S", line) for line in text.split("\n"))


def indented(text, by=3):
    return "\n".join(" " * by + line if line else "" for line in text.split("\n"))


def block(text):
    return ".. code-block:: text\n\n" + indented(text) if is_laid_out(text) else escape(text)


def comment(doc):
    """The comment of a declaration: paragraphs, and its labelled lines as a list."""
    parts, labelled = [], []
    for paragraph in filter(str.strip, re.split(r"\n\s*\n", doc)):
        if not LABEL.match(paragraph):
            parts.append(block(paragraph))
            continue
        for item in re.split(r"\n(?=[A-Z]\w+(?: {2,}|\n))", paragraph):
            label, rest = re.match(r"(\w+)\s*(.*)", item, re.S).groups()
            first, *more = rest.split("\n")
            indent = min((len(line) - len(line.lstrip()) for line in more if line.strip()), default=0)
            text = block("\n".join([first, *(line[indent:] for line in more)]))
            labelled.append(f":{label}:\n" + indented(text))
    return "\n\n".join(parts + ["\n".join(labelled)] * bool(labelled))


def title(text, line="="):
    return f"{text}\n{line * len(text)}\n\n"


def directive(kind, signatures, body):
    head = f".. {kind}:: "
    return head + ("\n" + " " * len(head)).join(signatures) + "\n\n" + indented(body) + "\n"


def flat(text):
    return " ".join(headers.COMMENT.sub("", text).split())


def members_of(declared):
    """The fields of a struct, or the values of an enum."""
    if declared["kind"] == "struct":
        for field in headers.fields(declared["body"]):
            pointer = re.search(rf"[^;/{{}}]*\(\*{field.name}\)[^;]*", headers.COMMENT.sub("", declared["body"]))
            yield directive("c:member", [flat(pointer[0]) if pointer else f"{field.type} {field.name}{field.array}".replace("* ", "*")], escape(field.doc))
        return
    for doc, found in headers.documented(r"(?P<field>\w+)(?: = [^,\n/]+)?(?:,|(?=\s*$))", declared["body"]):
        yield directive("c:enumerator", [found["field"]], escape(doc))


def declarations(text, where, seen):
    """The declarations of a header; functions that share a comment share an entry."""
    shared, names = [], []
    pieces = re.split(r"/\* ---- (.*?) ---- \*/", text, flags=re.S)
    for line, piece in zip(["", *pieces[1::2]], pieces[::2]):
        head, _, more = " ".join(re.sub(r"\n \* ", " ", line).split()).rstrip(".").replace(". ", ": ", 1).partition(": ")
        if head:
            yield title(escape(head), "-") + escape(more) + "\n"
        found = list(headers.documented(headers.DECLARATION, piece))
        for i, (doc, declared) in enumerate(found):
            if declared["function"]:
                shared.append(flat(declared["function"]))
                names.append(re.search(r"(\w+)\(", shared[-1])[1])
                following = found[i + 1] if i + 1 < len(found) else ("", {"function": None})
                if following[0] != doc or not following[1]["function"] or not doc:
                    yield directive("c:function", shared, comment(doc) + "\n\n" + where.links(names))
                    shared, names = [], []
            elif name := declared["name"] or declared["tag"] or declared["opaque"]:
                if name in seen:
                    continue
                seen.add(name)
                kind = declared["kind"] or "struct"
                inner = "\n".join(members_of(declared)) if declared["body"] else ""
                yield directive(f"c:{kind}", [name], comment(doc) + "\n\n" + inner)


def page(header, text, where, seen):
    about, rest = headers.COMMENT.search(text)[0], headers.COMMENT.sub("", text, count=1)
    paragraphs = map(block, re.split(r"\n\s*\n", headers.prose(about)))
    return "\n\n".join([title(header) + f"Header {file(header)}", *paragraphs, *declarations(rest, where, seen)])


def python_page(package, where):
    functions = {"": [title("Functions", "-")]}
    docs = {owner + node.name: (ast.get_docstring(node) or "", node) for path in ("_functions.py",)
            for owner, node in functions_of(ast.parse((package / path).read_text()))}
    for path in sorted((ROOT / "python/softback").glob("*.py")):
        for owner, node in functions_of(ast.parse(path.read_text())):
            docs.setdefault(owner + node.name, (ast.get_docstring(node) or "", node))
    seen = set()
    for owner, node in functions_of(ast.parse((package / "__init__.pyi").read_text())):
        name = owner + node.name
        if name in seen or node.name in dir(object):
            continue
        seen.add(name)
        doc, body = docs.get(name, ("", None))
        calls = sorted(set(re.findall(r"_c\.(sb_\w+)\(", ast.unparse(body)))) if body else []
        signature = f"{node.name}({ast.unparse(node.args).replace('self, /, ', '').replace('self, ', '').replace('self', '')})"
        first = doc.split("\n\n")[0]
        text = "" if is_laid_out(first) else escape(first)
        more = "C: " + ", ".join(f"``{c}``" for c in calls) if calls else ""
        is_property = any(ast.unparse(line) == "property" for line in node.decorator_list)
        kind = "py:property" if is_property else "py:method" if owner else "py:function"
        entry = directive(kind, [node.name if is_property else signature], f"{text}\n\n{more}")
        functions.setdefault(owner, []).append(entry)
    head = title("Python") + ("Names are those of C without ``sb_``, and options are keyword arguments: the C page of a function has "
                              "its shapes, its backward and when it fails. An error is an exception.\n")
    classes = [title(owner[:-1], "-") + directive("py:class", [owner[:-1]], "\n".join(entries))
               for owner, entries in functions.items() if owner]
    return "\n".join([head, *classes, *functions[""]])


def toctree(entries):
    return ".. toctree::\n   :maxdepth: 1\n\n" + "".join(f"   {entry}\n" for entry in entries)


def main(package, folder):
    where, seen, rooms = Where(package), set(), defaultdict(list)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in headers.texts(ROOT / "softback.h", set()):
        header = path.relative_to(ROOT).as_posix()
        if re.search(headers.DECLARATION.replace("\n    ", ""), text):
            stem = header.removesuffix(".h").replace("/", "_")
            rooms[header.partition("/")[0]].append(stem)
            (folder / f"{stem}.rst").write_text(page(header, text, where, seen))
    for room, stems in rooms.items():
        (folder / f"{room}.rst").write_text(title(ROOMS[room]) + toctree(sorted(stems)))
    (folder / "c.rst").write_text((ROOT / "docs/reference.rst").read_text() + toctree(room for room in ROOMS if room in rooms))
    (folder / "python.rst").write_text(python_page(package, where))


main(Path(sys.argv[1]), Path(sys.argv[2]))
