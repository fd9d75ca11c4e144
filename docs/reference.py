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
from textwrap import dedent

from docutils.nodes import make_id

ROOT = Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "python"))
from generator import headers, stubs, wrappers  # noqa: E402
from generator.declarations import short_names  # noqa: E402

ROOMS = {"ops": ("Operations", "From arithmetic to attention: softmax, products, norms, losses, masks, each with its backward."),
         "tensor": ("Tensors", "Making, reading and sharing them; dtypes, devices, random numbers, files, errors."),
         "autograd": ("Automatic differentiation", "The tape, gradient checks, exact derivatives, operations of your own."),
         "nn": ("Layers and training", "Layers, attention with its projections, parameters, optimisers, schedules, LoRA."),
         "models": ("Models", "Encoder-decoder, language model and classifier; vocabularies, data, trainers, decoding.")}
PYTHON_FILES = {"operation.py": "autograd", "show.py": "autograd", "functions.py": "ops", "training.py": "models",
                "pretrained.py": "models"}  # others: tensors
PYTHON_CLASSES = {"Tape": "autograd", "Mask": "ops"}  # others: as their file, or as what they call
PROPERTIES = {"size": "The number of elements.", "ndim": "The number of axes.", "shape": "The size of each axis.",
              "dtype": "The type of its elements: `f32`, `f64`, `bf16`, `dual`, `i32` or `bool`.", "device": "Where its data are: `cpu` or `cuda`.",
              "title": "Its dtype and shape as a text.", "T": "Its last two axes transposed."}
FIRST = ("Softmax", "Attention")  # headings that Python's page of operations begins with
LIKE = {"einsum": "sb_matmul", "min": "sb_max", "std": "sb_variance", "squeeze": "sb_reshape", "arange": "sb_tensor_full",
        "randn": "sb_tensor_full"}  # functions by hand, and others that are under the same heading
KINDS = {"Mapping[str, Any]": "dict", "Literal[False]": "bool", "Literal[True]": "bool"}
LABEL = re.compile(r"([A-Z]\w+)(?: {2,}|\n)")  # "Shape     a (n) -> y": a labelled line of a comment
SUBSCRIPTS = str.maketrans("ehijklmnoprstuvx", "ₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
DECLARED = r"SB_API [^;]*?\b(sb_\w+)\("  # of functions, their names
MEMBER = r"(?P<field>\w+)(?: = [^,\n/]+)?(?:,|(?=\s*$))"  # of an enum


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

    def kernels(self, name):
        path = self.sources.get(name, ("", 0))[0]
        stem = name.removeprefix("sb_")
        stem = stem if stem in self.plain else Path(path).stem
        return [self.plain[k] for k in (stem, f"{stem}_tiled") if path.startswith("ops/") and k in self.plain]

    def links(self, names, other="Python"):
        """One line of links for functions that share a comment."""
        found = defaultdict(dict)
        for name in names:
            if other == "C":
                found["C"][name] = f":c:func:`{name}`"
            elif name in self.python:
                found["Python"][name] = f":py:obj:`{self.python[name]}`"
            if kernels := self.kernels(name):
                found["Plain kernel"].update((path, file(path)) for path in kernels)
            if name in self.sources:
                path, line = self.sources[name]
                found["Source"].setdefault(path, file(path, line))
            links = sorted((link for known in (name, *kernels) for link in self.lessons[known]), key=lambda link: int(re.findall(r"\d+", link)[0]))
            found["Lesson"].update((link, link) for link in links)
            found["Example"].update((link, link) for link in self.examples[name][:3])
        line = " · ".join(f"{kind} {', '.join(links.values())}" for kind, links in found.items() if links)
        return line and ".. rst-class:: links\n\n" + line


def name_in(signature):
    return re.match(r"\w*", signature)[0]


def functions_of(tree):
    """Functions and methods of a module, each with the prefix of its class."""
    for top in tree.body:
        for node in top.body if isinstance(top, ast.ClassDef) else [top]:
            if isinstance(node, ast.FunctionDef) and (node.name[0] != "_" or node.name in ("__init__", "__call__")):
                yield (top.name + "." if isinstance(top, ast.ClassDef) else ""), node


def typeset(text):
    """Formulas as ASCII has them, with the signs of Unicode: an arrow, powers, indices, the prime of a transpose."""
    text = re.sub(r"\^(-?\d+)\b(?!/)", lambda m: m[1].translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")), text.replace("->", "→"))
    if not re.search(r"\b[A-Za-z]+_([a-z]{2}|[a-dfgqwyz])\b", text):  # which have no sign: then all stay as they are
        text = re.sub(r"\b(d?[A-Za-z]|sum|max)_([ehijklmnoprstuvx])\b", lambda m: m[1] + m[2].translate(SUBSCRIPTS), text)
    return re.sub(r"((?<![\w'])[A-Za-z]|\))'(?![\w'])", r"\1′", text)


def escape(text):
    """Prose without markup, in which names of C are code."""
    found = r'`([^`\n]+)`|(?<![\w"/])((?:sb|SB)_\w+(?:\(\))?|"[a-z0-9_]+")(?![\w*])|[\\*_|`]'
    return re.sub(found, lambda m: f"``{m[1] or m[2]}``\\ " if m[1] or m[2] else "\\" + m[0], typeset(text))


def is_laid_out(text):
    """Whether spaces have a meaning."""
    return any(re.search(r"\S {2,}\S|^ {2,}\S", line) for line in text.split("\n"))


def aligned(text):
    """The same where spaces have a meaning: what becomes shorter is filled up."""
    pieces = zip(*(re.split(r"(\n *| {2,})", shown) for shown in (text, typeset(text))))
    return re.sub(r" +$", "", "".join(new.ljust(len(old)) for old, new in pieces), flags=re.M)


def indented(text, by=3):
    return "\n".join(" " * by + line if line else "" for line in text.split("\n"))


def block(text):
    if "\n" not in text:  # formulas beside each other
        text = re.sub(r"(?<=\S)(,?) {2,}(?=\S)", lambda m: (m[1] or ";") + " ", text)
    return ".. code-block:: text\n\n" + indented(aligned(text)) if is_laid_out(text) else escape(text)


def comment(doc, added=()):
    """The comment of a declaration: paragraphs, and its labelled lines as a list, with those that are added."""
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
    order = [":Shape:", ":Returns:", ":Options:", ":Fields:"]
    labelled = sorted([*labelled, *added], key=lambda item: order.index(item.split()[0]) if item.split()[0] in order else len(order))
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
    for doc, found in headers.documented(MEMBER, declared["body"]):
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


def overview(groups):
    """A list of functions by group, each with links: [(heading, short heading, [(role, name, short name)])]."""
    return "\n".join(f"- `{escape(short)} <#{make_id(head)}>`__: " + ", ".join(f":{role}:`{name} <{to}>`" for role, to, name in found)
                     for head, short, found in groups if head and found) + "\n"


def page(header, text, where, seen):
    about, rest = split_header(text)
    paragraphs = map(block, re.split(r"\n\s*\n", about))
    groups = [(head, re.split(r"[:,.(]", head)[0], [("c:func", name, name.removeprefix("sb_")) for name in re.findall(DECLARED, piece)])
              for head, _, piece in sections(rest)]
    return "\n\n".join([title(header) + f"Header {file(header)}", *paragraphs, *[overview(groups)] * (len(groups) > 4),
                        *declarations(rest, where, seen)])


# ---- Python ----


class Stub:
    """What __init__.pyi says: {(owner, name): the overloads of a function}, what types stand for, and other names of functions."""

    def __init__(self, package):
        tree = ast.parse((package / "__init__.pyi").read_text())
        types = [*tree.body, *ast.parse((package / "_declarations.pyi").read_text()).body]
        self.types = {node.target.id: node.value for node in types if isinstance(node, ast.AnnAssign) and node.value}
        self.functions, self.others = defaultdict(list), {}
        for owner, node in functions_of(tree):
            self.functions[owner, node.name].append(node)
        for node in (node for node in tree.body if isinstance(node, ast.Assign)):
            for other, of in zip(*(getattr(side, "elts", [side]) for side in (node.targets[0], node.value))):
                owner, dot, name = ast.unparse(of).rpartition(".")
                if (owner + dot, name) in self.functions:
                    self.functions["", other.id] = self.functions[owner + dot, name]
                    self.others[owner + dot + name] = other.id

    def kinds(self, node):
        """The members of a union, in place of names that are this module's own."""
        if isinstance(node, ast.BinOp):
            return self.kinds(node.left) + self.kinds(node.right)
        text = ast.unparse(node)
        if text in self.types and text != "TensorLike":
            return self.kinds(self.types[text])
        return [re.sub(r"\b_[A-Z]\w+", lambda m: self.kind(ast.Name(m[0])), KINDS.get(text, text))]

    def kind(self, *nodes):
        """A union, where sequences of several things are one of any of them; literals likewise."""
        merged, between = {}, {"Sequence": " | ", "Literal": ", "}
        for text in dict.fromkeys(kind for node in nodes for kind in self.kinds(node)):
            form, bracket, inner = text.partition("[")
            merged.setdefault(form if form in between else text, []).append(inner[:-1])
        return " | ".join(f"{form}[{between[form].join(inner)}]" if form in between else form for form, inner in merged.items())

    def signature(self, overloads, listed=None):
        """The parameters, and the type of the result. Options have types, or are those that a list below has."""
        given = overloads[0 if "Literal[True]" in ast.unparse(overloads[-1].args) else -1].args
        named = [*given.posonlyargs, *given.args]
        defaults = [None] * (len(named) - len(given.defaults)) + given.defaults
        parts = [(arg, default, ": " + self.kind(arg.annotation)) for arg, default in zip(named, defaults) if arg.annotation]
        by_name = [(arg, default, ": " + self.kind(arg.annotation) if listed is None else "")
                   for arg, default in zip(given.kwonlyargs, given.kw_defaults) if listed is None or arg.arg in listed]
        shown, last = ([arg.arg + kind + (f" = {ast.unparse(default)}" if default else "") for arg, default, kind in some]
                       for some in (parts, by_name))
        star = [f"*{given.vararg.arg}: {self.kind(given.vararg.annotation)}"] if given.vararg else ["*"] * bool(last)
        rest = ["**options"] * bool(given.kwarg or len(by_name) < len(given.kwonlyargs))
        return f"({', '.join(shown + star + last + rest)})", self.kind(*(node.returns for node in overloads))


def python_docs(package):
    """{name: (its docstring, its code, its file)} of functions, methods and classes."""
    docs, public = {}, ast.parse((ROOT / "python/softback/__init__.py").read_text())
    origin = {name.name: node.module for node in public.body if isinstance(node, ast.ImportFrom) for name in node.names}
    for path in (package / "_functions.py", *sorted((ROOT / "python/softback").glob("*.py"))):
        tree = ast.parse(path.read_text())
        classes = (("", node) for node in tree.body if isinstance(node, ast.ClassDef))
        for owner, node in (*classes, *functions_of(tree)):
            if owner or origin.get(node.name, path.stem) == path.stem:
                docs.setdefault(owner + node.name, (ast.get_docstring(node) or "", ast.unparse(node), path.name))
    return docs


class Python:
    """The reference of Python, entry by entry."""

    def __init__(self, package, where):
        _, *parts = re.split(r"^(\w[\w.]*)\n", (ROOT / "docs/examples.txt").read_text(), flags=re.M)
        self.examples = dict(zip(parts[::2], parts[1::2]))
        self.where, self.stub, self.docs, self.headers = where, Stub(package), python_docs(package), headers.read(ROOT)
        self.docs.update((other, self.docs[name]) for name, other in self.stub.others.items())
        self.listed = {}  # of a struct of options: the first function that has it, and its comment
        declared = [found for _, text in headers.texts(ROOT / "softback.h", set()) for _, found in headers.documented(headers.DECLARATION, text)]
        self.members = {found["name"]: [escape(wrappers.spelled(self.headers, doc)) for doc, _ in headers.documented(MEMBER, found["body"])]
                        for found in declared if found["kind"] == "enum" and found["name"]}
        where.python.update((f"sb_{name}", owner + name) for owner, name in reversed(self.stub.functions)
                            if f"sb_{name}" in self.headers.functions and f"sb_{name}" not in where.python)

    def meanings(self, enum, default):
        """The members of an enum with their comments: of the default that alone, then the others."""
        members = [(f"``'{name}'``", doc) for name, doc in zip(short_names(self.headers.enums[enum]), self.members[enum])]
        own, others = ([(name, doc) for name, doc in members if (name == f"``{default}``") == is_own] for is_own in (True, False))
        said = [doc for _, doc in own if doc] + ["or " + name + f": {doc}" * bool(doc) for name, doc in others]
        return "; ".join(said) if any(self.members[enum]) else "or " + ", ".join(name for name, _ in others)

    def option(self, found):
        """A line about options that share a comment: [(name, default, field, type)]."""
        _, default, v, kind = found[0]
        doc = re.sub(rf"(^|; )default( \(.*?\))?:? {re.escape(default.replace(chr(39), chr(34)))}(?=$|[;,]|\.(?!\d))|^None: ", "", wrappers.spelled(self.headers, stubs.about(v)))
        kinds = [kind for kind in self.stub.kinds(ast.parse(kind, mode="eval").body) if kind not in ("bool", "None")]
        said = [escape(doc)] * bool(doc) + ([self.meanings(v.type, default)] if v.type in self.members else [])
        typed = f" ({escape(' | '.join(kinds))})" if kinds and v.type not in self.members else ""
        shown = ", ".join(f"``{name}={default}``" for name, default, _, _ in found)
        return re.sub(r"\s*\n\s*", " ", f"- {shown}{typed}{': ' * bool(said)}{'; '.join(said)}")

    def options(self, struct, node):
        """A list of options, and their names; those that share a comment share a line, and those of inner structs are listed once."""
        inner = [v.type for v in self.headers.structs[struct] if v.type in self.listed]
        known = {v.name for kind in inner for v, _, _ in stubs.options(self.headers, kind)}
        defaults = {arg.arg: ast.unparse(default) for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults) if arg.arg not in known}
        names, lines = [*defaults], defaultdict(list)
        for v, kind, _ in stubs.options(self.headers, struct):
            if v.name in defaults:
                lines[v.doc or v.name].append((v.name, defaults.pop(v.name), v, kind))
        others = [f"- and those of :py:obj:`{self.listed[kind][0]}`" for kind in inner]
        return ":Options:\n" + indented("\n".join([*map(self.option, lines.values()), *others])), names

    def body(self, said, names, calls=()):
        """The text of an entry: what is said of it, the examples of its names, and links to C."""
        examples = [".. code-block:: pycon\n\n" + indented(dedent(self.examples.pop(name)).replace("<BLANKLINE>\n", "").strip())
                    for name in names if name in self.examples]
        return "\n\n".join([said, *examples, self.where.links(calls, "C")])

    def entry(self, owner, name):
        """A function or method: what it calls in C, its directive, its signature and what is said of it."""
        nodes, (doc, code, _) = self.stub.functions[owner, name], self.docs.get(owner + name, ("", "", ""))
        calls, struct = sorted(set(re.findall(r"_c\.(sb_\w+)\(", code))), re.search(r"options\((sb_\w+), option", code)
        struct = struct and nodes[0].args.kwonlyargs and next(  # a typedef of it has the same fields
            kind for kind, fields in self.headers.structs.items() if fields is self.headers.structs[struct[1]])
        like = name if owner == "Tensor." and ("", name) in self.stub.functions else self.stub.others.get(owner + name)
        own = struct and not like and self.listed.setdefault(struct, (owner + name, doc))[1] == doc
        listed, names = self.options(struct, nodes[0]) if own else ("", [])
        if struct and not own and not like:
            listed = f":Options: as of :py:obj:`{self.listed[struct][0]}`"
        given, made = self.stub.signature(nodes, names if struct or like else None)
        if like:
            said = f":py:func:`{like}`" + " of this tensor." * (like == name)
        else:
            more = [listed] * bool(listed)
            structs = [kind for kind in dict.fromkeys(re.findall(r"sb_\w+", given + made)) if self.headers.structs.get(kind)]
            fields = (f"``{kind}``: " + escape(", ".join(v.name for v in self.headers.structs[kind])) for kind in structs)
            more += [":Fields: " + "; ".join(fields)] * bool(structs)
            said = comment(doc.partition("\n\nOptions\n")[0] or (PROPERTIES.get(name, "") if owner == "Tensor." else ""), more)
        if any(ast.unparse(line) == "property" for line in nodes[0].decorator_list):
            return calls, "py:property", f"{name}\n   :type: {made.replace('| Any', '| None')}", said
        shown = given if name == "__init__" else f"{name}{given} -> {made}"
        return calls, "py:method" if owner else "py:function", shown, said

    def place(self, owner, name, calls):
        """The folder of C in whose page a function is, and its heading."""
        like = [] if owner else [LIKE.get(name)]
        found = [self.where.sections[call] for call in (*like, *calls[:1]) if call in self.where.sections]
        return found[0] if found else (PYTHON_FILES.get(self.docs.get(owner + name, ("", "", ""))[2], "tensor"), "")

    def one_class(self, owner, entries):
        """A class; methods with one text that follow each other share an entry."""
        own, made, inner = self.docs.get(owner, ("", "", ""))[0], "", []
        for _, name, (calls, kind, shown, said) in entries:
            if name == "__init__":
                made = shown
                inner.insert(0, ("", [], said, calls))
            elif inner and said and (kind, said) == (inner[-1][0], inner[-1][2]):
                inner[-1][1].append(shown)
                inner[-1][3].extend(calls)
            else:
                inner.append((kind, [shown], said, calls))
        texts = [(kind, shown, self.body(said, [f"{owner}.{name_in(one)}" for one in shown], calls)) for kind, shown, said, calls in inner]
        inside = "\n\n".join(directive(*text) if text[0] else text[2] for text in texts)
        return title(owner, "-") + directive("py:class", [owner + made], self.body(comment(own), [owner]) + "\n\n" + inside)

    def summary(self, owner):
        """The first sentence on a class, without its name in front: "A trainer: it runs ..."."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", owner)
        said = re.sub(rf"^(An? |The )?{words}: ", "", first_sentence(self.docs.get(owner, ("",))[0]), flags=re.I)
        return said[:1].upper() + said[1:]

    def heading(self, head):
        """A heading whose id is not a function's."""
        return f"{head} functions" if ("", head.lower()) in self.stub.functions else head or "Functions"

    def pages(self):
        """{folder: its page}: classes, and functions below the headings of their headers; those with one text share an entry."""
        owners, rooms = defaultdict(list), {room: ([], defaultdict(dict)) for room in ROOMS}
        for owner, name in self.stub.functions:
            entry = self.entry(owner, name)
            room, head = self.place(owner, name, entry[0])
            if owner:
                owners[owner[:-1]].append((room, name, entry))
            else:
                _, shown, calls = rooms[room][1][head].setdefault(entry[3] or name, (entry[3], [], []))
                shown.append(entry[2])
                calls.extend(entry[0])
        for owner, entries in owners.items():
            path = self.docs.get(owner, ("", "", ""))[2]
            room = PYTHON_CLASSES.get(owner) or (PYTHON_FILES.get(path, "tensor") if path != "_functions.py" else entries[0][0])
            rooms[room][0].append((owner, self.one_class(owner, entries)))
        order = [*FIRST, *(head for _, head in self.where.sections.values()), ""]
        for room, (classes, headed) in rooms.items():
            groups = [(self.heading(head), [*entries.values()]) for head, entries in sorted(headed.items(), key=lambda found: order.index(found[0]))]
            heads = [title(escape(head), "-") + "\n".join(
                directive("py:function", shown, self.body(said, map(name_in, shown), calls)) for said, shown, calls in entries)
                for head, entries in groups]
            listed = [(head, head, [("py:func", name, name) for _, shown, _ in entries for name in map(name_in, shown)]) for head, entries in groups]
            classes.sort(key=lambda found: found[0].startswith("Pretrained"))
            known = "".join(f"- :py:class:`{name}`: {escape(self.summary(name))}\n" for name, _ in classes)
            texts = [text for _, text in classes]
            parts = [overview(listed), *heads, *texts] if room == "ops" else [known, *texts, *heads]
            text = "\n".join([title(f"{ROOMS[room][0]} in Python"), *parts])
            yield room, re.sub(r"``(sb_\w+?)(?:\(\))?``", lambda m: f":py:obj:`{self.where.python[m[1]]}`" if m[1] in self.where.python else m[0], text)


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
                where.sections.update((name, (room, own)) for name in re.findall(DECLARED, piece))
    for room, found in rooms.items():
        entries = [(stem, header, sentence) for header, (stem, sentence) in sorted(found.items(), key=lambda f: f[0] != "ops/ops.h")]
        (folder / f"{room}.rst").write_text(title(ROOMS[room][0]) + escape(ROOMS[room][1]) + "\n\n" + listed(entries) + toctree(
            [stem for stem, _, _ in entries], "hidden"))
    for name, prefix in (("c", ""), ("python", "python_")):
        text = (ROOT / f"docs/reference_{name}.rst").read_text()
        (folder / f"{name}.rst").write_text(text + "\n" + listed((prefix + room, *ROOMS[room]) for room in ROOMS) + toctree(
            [prefix + room for room in ROOMS], "hidden"))
    python = Python(package, where)
    for room, text in python.pages():
        (folder / f"python_{room}.rst").write_text(text)
    if python.examples:
        sys.exit(f"docs/examples.txt: there is no {', '.join(python.examples)}")


main(Path(sys.argv[1]), Path(sys.argv[2]))
