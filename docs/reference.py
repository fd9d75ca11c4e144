#!/usr/bin/env python3
"""Writes the reference of C and of Python for Sphinx:  docs/reference.py PACKAGE FOLDER

The declarations and their comments are read as python/generate.py reads them, from the public headers; PACKAGE is
what it has written. FOLDER gets a page for each header, and for Python one for each folder of headers. Each function
leads to its source, its plain kernel, lessons and examples that use it, and its name in the other language."""
import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "python"))
from generator import headers  # noqa: E402

ROOMS = {"ops": ("Operations", "From arithmetic to attention: softmax, products, norms, losses, masks, each with its backward."),
         "tensor": ("Tensors", "Making, reading and sharing them; dtypes, devices, random numbers, files, errors."),
         "autograd": ("Automatic differentiation", "The tape, gradient checks, exact derivatives, operations of your own."),
         "nn": ("Layers and training", "Layers, attention with its projections, parameters, optimisers, schedules, LoRA."),
         "models": ("Models", "Encoder-decoder, language model and classifier; vocabularies, data, trainers, decoding.")}
PYTHON_FILES = {"operation.py": "autograd", "show.py": "autograd", "functions.py": "ops", "training.py": "models",
                "pretrained.py": "models"}  # others: tensors
PROPERTIES = {"size": "The number of elements.", "ndim": "The number of axes.", "shape": "The size of each axis.",
              "dtype": "The type of its elements: `f32`, `f64`, `bf16`, `dual`, `i32` or `bool`.", "device": "Where its data are: `cpu` or `cuda`.",
              "title": "Its dtype and shape as a text.", "T": "Its last two axes transposed."}
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
        self.sections = {}  # of a function: its folder, and the heading above it
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

    def links(self, names, other="Python"):
        """One line of links for functions that share a comment."""
        found = defaultdict(dict)
        for name in names:
            if other == "C":
                found["C"][name] = f"``{name}``"
            elif name in self.python:
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


def typeset(text):
    """Formulas as ASCII has them, with the signs of Unicode: an arrow, powers, the prime of a transpose."""
    text = re.sub(r"\^(-?\d+)\b", lambda m: m[1].translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")), text.replace("->", "→"))
    return re.sub(r"(?<![\w'])([A-Za-z])'(?!\w)", r"\1′", text)


def escape(text):
    """Prose without markup, in which names of C are code."""
    found = r'`([^`\n]+)`|(?<![\w"/])((?:sb|SB)_\w+(?:\(\))?)(?![\w*])|[\\*_|`]'
    return re.sub(found, lambda m: f"``{m[1] or m[2]}``\\ " if m[1] or m[2] else "\\" + m[0], typeset(text))


def is_laid_out(text):
    """Whether spaces have a meaning."""
    return any(re.search(r"\S {2,}\S|^ {2,}\S", line) for line in text.split("\n"))


def indented(text, by=3):
    return "\n".join(" " * by + line if line else "" for line in text.split("\n"))


def block(text):
    if "\n" not in text:  # formulas beside each other
        text = re.sub(r"(?<=\S) {2,}(?=\S)", "; ", text)
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


def sections(text):
    """The parts of a header: their headings, what else these say, and the declarations below."""
    pieces = re.split(r"/\* ---- (.*?) ---- \*/", text, flags=re.S)
    for line, piece in zip(["", *pieces[1::2]], pieces[::2]):
        head, _, more = " ".join(re.sub(r"\n \* ", " ", line).split()).rstrip(".").replace(". ", ": ", 1).partition(": ")
        yield head, more, piece


def declarations(text, where, seen):
    """The declarations of a header; functions that share a comment share an entry."""
    shared, names = [], []
    for head, more, piece in sections(text):
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


def split_header(text):
    """The comment that a header begins with, and the rest."""
    return headers.prose(headers.COMMENT.search(text)[0]), headers.COMMENT.sub("", text, count=1)


def first_sentence(text):
    return re.match(r".*?(?<!al)\.(?=\s|$)|.*", " ".join(text.split("\n\n")[0].split()))[0]


def page(header, text, where, seen):
    about, rest = split_header(text)
    paragraphs = map(block, re.split(r"\n\s*\n", about))
    return "\n\n".join([title(header) + f"Header {file(header)}", *paragraphs, *declarations(rest, where, seen)])


# ---- Python ----


def python_docs(package):
    """{name: (its docstring, its code, its file)} of functions, methods and classes."""
    docs = {}
    for path in (package / "_functions.py", *sorted((ROOT / "python/softback").glob("*.py"))):
        tree = ast.parse(path.read_text())
        classes = (("", node) for node in tree.body if isinstance(node, ast.ClassDef))
        for owner, node in (*classes, *functions_of(tree)):
            docs.setdefault(owner + node.name, (ast.get_docstring(node) or "", node, path.name))
    return docs


def python_entry(owner, node, doc, functions, where, calls):
    """A function or method: its signature, and what is said of it."""
    given = re.sub(r"\bself(, )?(/(, )?)?", "", ast.unparse(node.args), count=1) if owner else ast.unparse(node.args)
    is_property = any(ast.unparse(line) == "property" for line in node.decorator_list)
    if not doc and owner == "Tensor.":
        doc = PROPERTIES.get(node.name, "")
        if node.name in functions:
            return "py:method", f"{node.name}({given})", f":py:func:`{node.name}` of this tensor."
    text = comment(re.split(r"\n\nOptions\n", doc)[0])
    kind = "py:property" if is_property else "py:method" if owner else "py:function"
    return kind, node.name + ("" if is_property else f"({given})"), f"{text}\n\n{where.links(calls, 'C')}"


def python_pages(package, where):
    """{folder: its page}: classes, and functions below the headings of their headers; those that share a comment
    share an entry."""
    docs, seen, owners = python_docs(package), set(), defaultdict(list)
    tree = ast.parse((package / "__init__.pyi").read_text())
    functions = {node.name for owner, node in functions_of(tree) if not owner}
    rooms = {room: (defaultdict(list), defaultdict(dict)) for room in ROOMS}
    for owner, node in functions_of(tree):
        name = owner + node.name
        if name in seen or node.name in dir(object):
            continue
        seen.add(name)
        doc, body, path = docs.get(name, ("", None, ""))
        calls = sorted(set(re.findall(r"_c\.(sb_\w+)\(", ast.unparse(body)))) if body else []
        room, head = where.sections.get(calls[0] if calls else "", (PYTHON_FILES.get(path, "tensor"), ""))
        made = python_entry(owner, node, doc, functions, where, calls)
        if owner:
            owners[owner].append((room, directive(made[0], [made[1]], made[2])))
        else:
            entry = rooms[room][1][head].setdefault(doc or name, (made[0], [], []))
            entry[1].append(made[1])
            entry[2].extend(calls)
    for owner, entries in owners.items():
        own, _, path = docs.get(owner[:-1], ("", None, ""))
        room = PYTHON_FILES.get(path, "tensor") if path != "_functions.py" else entries[0][0]
        rooms[room][0][owner].append(title(owner[:-1], "-") + directive(
            "py:class", [owner[:-1]], comment(own) + "\n\n" + "\n".join(entry for _, entry in entries)))
    order = ["", *(head for _, head in where.sections.values())]
    for room, (classes, headed) in rooms.items():
        heads = [title(escape(head or "Functions"), "-") + "\n".join(
            directive(kind, shown, comment(re.split(r"\n\nOptions\n", doc)[0] if doc not in functions else "") + "\n\n" +
                      where.links(calls, "C")) for doc, (kind, shown, calls) in entries.items())
                 for head, entries in sorted(headed.items(), key=lambda found: order.index(found[0]))]
        yield room, "\n".join([title(f"{ROOMS[room][0]} in Python"), *(heads if room == "ops" else []),
                               *(part for parts in classes.values() for part in parts), *(heads if room != "ops" else [])])


def toctree(entries, *options):
    return ".. toctree::\n   :maxdepth: 1\n" + "".join(f"   :{option}:\n" for option in options) + "\n" + "".join(
        f"   {entry}\n" for entry in entries)


def listed(entries):
    """(page, title, sentence) as a list of links."""
    return "".join(f"- :doc:`{shown} <{page}>`: {escape(sentence)}\n" for page, shown, sentence in entries) + "\n"


def main(package, folder):
    where, seen, rooms = Where(package), set(), {room: {} for room in ROOMS}
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in headers.texts(ROOT / "softback.h", set()):
        header = path.relative_to(ROOT).as_posix()
        if re.search(headers.DECLARATION.replace("\n    ", ""), text):
            about, rest = split_header(text)
            room, stem = header.partition("/")[0], header.removesuffix(".h").replace("/", "_")
            rooms[room][header] = stem, first_sentence(about)
            (folder / f"{stem}.rst").write_text(page(header, text, where, seen))
            for head, _, piece in sections(rest):
                own = re.split(r"[:,.(]", head or about)[0]
                where.sections.update((name, (room, own)) for name in re.findall(r"SB_API [^;]*?\b(sb_\w+)\(", piece))
    for room, found in rooms.items():
        entries = [(stem, header, sentence) for header, (stem, sentence) in sorted(found.items(), key=lambda f: f[0] != "ops/ops.h")]
        (folder / f"{room}.rst").write_text(title(ROOMS[room][0]) + escape(ROOMS[room][1]) + "\n\n" + listed(entries) + toctree(
            [stem for stem, _, _ in entries], "hidden"))
    for name, prefix in (("c", ""), ("python", "python_")):
        text = (ROOT / f"docs/reference_{name}.rst").read_text()
        (folder / f"{name}.rst").write_text(text + "\n" + listed((prefix + room, *ROOMS[room]) for room in ROOMS) + toctree(
            [prefix + room for room in ROOMS], "hidden"))
    for room, text in python_pages(package, where):
        (folder / f"python_{room}.rst").write_text(text)


main(Path(sys.argv[1]), Path(sys.argv[2]))
