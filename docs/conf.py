"""The site, made of Markdown by Sphinx: docs/site.sh runs it in a folder that looks like the tree, with the
pages of docs/ at its top. Everything works from disk: formulas become MathML here, and links to files of the
library lead to pages that show them."""
import os
import re
from pathlib import Path
from posixpath import normpath, relpath
from textwrap import dedent

from docutils import nodes
from docutils.utils.math import latex2mathml
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[1]
project, author, copyright = "softback", "", ""
release = version = re.search(r"version : '([\d.]+)'", (ROOT / "meson.build").read_text())[1]
extensions = ["myst_parser", "sphinx_copybutton"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
root_doc = "index"
include_patterns = ["*.md", "reference/*.rst", "teach/[!b]*.md", "teach/lessons/*.md"]
exclude_patterns = ["README.md"]
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
html_theme = "furo"
html_baseurl = os.environ.get("SOFTBACK_ADDRESS", "") and os.environ["SOFTBACK_ADDRESS"] + "/"  # for rel=canonical
html_title, html_short_title = f"softback {version}", "softback"
html_static_path = ["style.css", str(ROOT / "teach/pictures")]
html_css_files = ["style.css"]
html_search_scorer = str(ROOT / "docs/search.js")
templates_path = ["templates"]
html_sidebars = {"**": ["sidebar/brand.html", "sidebar/search.html", "sidebar/scroll-start.html", "made.html",
                        "sidebar/navigation.html", "sidebar/scroll-end.html"]}
toc_object_entries = False  # Sphinx copies them into each page
python_display_short_literal_types = True
html_show_search_summary = False  # a browser fetches no page from disk
html_math_renderer = "mathml"
html_copy_source = html_show_sphinx = html_show_copyright = False
pygments_style, pygments_dark_style = "friendly", "github-dark"
copybutton_exclude = ".linenos, .gp, .go"
html_theme_options = {"light_css_variables": {"color-brand-primary": "#a03c00", "color-brand-content": "#0b5fad"},
                      "dark_css_variables": {"color-brand-primary": "#ffa05c", "color-brand-content": "#6cb6ff"}}

SOURCE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{path}</title>
<link rel="stylesheet" href="{top}_static/pygments.css">
<link rel="stylesheet" href="{top}_static/style.css">
</head>
<body class="source">
<p><a href="{top}index.html">softback</a> / {path}</p>
{text}
</body>
</html>
"""
# The glossary: {terms of a row: what they mean}, and terms that are words of everyday language, too.
TERMS = {row[0].lower(): row[1].replace("$", "").replace("\\", "") for row in re.findall(
    r"^\| ([^|$]*?) \| ([^|]*?) \|", (ROOT / "teach/glossary.md").read_text(), re.M) if row[0] not in ("term", "---")}
AMBIGUOUS = ("value", "key", "head", "node", "symbol", "score", "query", "mask")
SOURCES = set()  # files that pages link to
MADE = {"./run playground": "live.html", "./run book": "book.html"}  # commands that make what the site has
LIVE = {"04_the_wrong_gradient": "trains the mistake of this lesson beside the correct gradient",
        "07_saturated_rows": "counts the saturated rows of two models while they learn",
        "11_learn_to_reverse": "trains the model of this lesson"}
# Exhibits of the live page within lessons, behind the paragraph that names them, with the numbers of the lesson
EXHIBITS = {"02_everyone_pays": "row", "03_never_build_j": "row#upstream=0.5,-1,2,0.25",
            "09_online": "flash#fscores=1,2,5,0.5,3,-1&fvalues=1,-1,2,0.5,0,4&block=2"}
FRAME = """
<iframe class="exhibit" src="../../live.html?exhibit={}" title="exhibit of the live page" loading="lazy"></iframe>
<script>
addEventListener("message", ({{source, data}}) => {{
    for (const frame of document.querySelectorAll("iframe.exhibit"))
        if (source === frame.contentWindow && data.height > 0) frame.style.height = data.height + "px";
}});
</script>
"""


def of_the_tree(app, page, text):
    """Pages of docs/ lie at the top of the site."""
    at_top = "/" not in page and page not in ("CONTRIBUTING", "CHANGELOG")
    text[0] = text[0].replace("](../", "](") if at_top else re.sub(r"\]\(((?:\.\./)*)docs/", r"](\1", text[0])
    if "lessons/" in page:
        if exhibit := EXHIBITS.get(Path(page).name):
            text[0] = re.sub(r"(?s)exhibit \d.*?\n(?=\n)", lambda match: match[0] + FRAME.format(exhibit), text[0], count=1)
        text[0] = re.sub(r"exhibit (\d)", r"[exhibit \1](../../live.html#panel=\1)", text[0])
    if says := LIVE.get(Path(page).name):
        text[0] += f"\n\nThe [live page](../../live.html) {says}.\n"
    text[0] = re.sub(r"(?<=^```c\n).*?(?=^```)", lambda code: dedent(code[0]), text[0], flags=re.M | re.S)


def math(self, node):
    tex = re.sub(r"\\([bB]igg?)(?=\s*([(\[])|\s*[)\]])", lambda m: m[0] + ("l" if m[2] else "r"), node.astext())  # as docutils knows them
    try:
        made = str(latex2mathml.tex2mathml(tex, as_block=isinstance(node, nodes.math_block)))
    except Exception as error:
        raise ValueError(f"{node.source}:{node.line}: {node.astext()}: {error}") from error
    made = made.replace("<mo>‖</mo>", '<mo stretchy="false">‖</mo>')  # else a bar with an exponent grows
    made = re.sub(r"<mi>d</mi>\s*((?:<msu[bp]>\s*)?)<mi>(\w)</mi>", r'\1<mi class="gradient">d\2</mi>', made)  # ds is one name
    made = re.sub(r"<m(?:text|i)>(d\w)</m(?:text|i)>", r'<mi class="gradient">\1</mi>', made)
    made = re.sub(r"(<mi>(?:ln|log)</mi>)\s*(?=<m[insf])", r'\1<mspace width="0.17em"></mspace>', made)
    block = isinstance(node, nodes.math_block)
    self.body.append(f'<div class="formula">{made}</div>' if block else made)
    raise nodes.SkipNode


class Links(SphinxTransform):
    """What is code and names something of the library leads to it; files lead to pages that show them; the first
    use of a term in a page leads to the glossary."""
    default_priority = 5

    def apply(self):
        page = self.env.docname
        for link in list(self.document.findall(addnodes.download_reference)):
            path, _, line = link["reftarget"].partition("#")
            path = path[1:] if path[0] == "/" else normpath(str(Path(page).parent / path))
            link.replace_self(self.reference(page, path, link.children, "#" * bool(line) + line))
        for link in list(self.document.findall(addnodes.pending_xref)):
            target, path = link["reftarget"], normpath(str(Path(page).parent / link["reftarget"]))
            if link.get("refdomain") == "doc" and target not in self.env.found_docs:  # a file of Markdown that is no page
                made = self.reference(page, target + ".md", link.children) if target != "README" else nodes.reference(
                    "", "", *link.children, refuri=relpath("index.html", str(Path(page).parent)), internal=True)
                link.replace_self(made)
            elif link["reftype"] == "myst" and re.search(r"\.html(#|$)", target):  # made beside the pages
                link.replace_self(nodes.reference("", "", *link.children, refuri=target))
            elif link["reftype"] == "myst" and Path(self.env.srcdir, path).is_dir():
                link.replace_self(link.children)
        for text in list(self.document.findall(nodes.Text)):
            if " %" in text and not isinstance(text.parent, (nodes.literal, nodes.literal_block, nodes.raw)):
                text.parent.replace(text, nodes.Text(text.replace(" %", "\u00a0%")))
        for cell in self.document.findall(nodes.entry):
            cell["classes"] += ["short"] * (len(cell.astext()) <= 14)
        for code in list(self.document.findall(nodes.literal)):
            name = re.fullmatch(r"(sb_\w+|SB_[A-Z]\w+)(\(\))?", code.astext())
            if isinstance(code.parent, (nodes.reference, addnodes.pending_xref)):
                continue
            if code.astext() in MADE:
                link = nodes.reference("", "", refuri=relpath(MADE[code.astext()], str(Path(page).parent)), internal=True)
                code.replace_self(link)
                link += code
            elif name:
                link = addnodes.pending_xref("", refdomain="c", reftype="identifier", reftarget=name[1], refdoc=page)
                code.replace_self(link)
                link += code

        if page.startswith(("teach/", "how_to", "learn")):
            self.link_terms(page)

    def link_terms(self, page):
        """In the glossary each row has an id, and lessons are links; elsewhere the first use of a term leads to its row."""
        lessons = {int(Path(name).name[:2]): name for name in self.env.found_docs if name.startswith("teach/lessons/")}
        if page == "teach/glossary":
            for row in self.document.findall(nodes.row):
                row[0]["ids"].append("term-" + nodes.make_id(row[0].astext()))
            found = {f"lesson {number}": (name, "") for number, name in lessons.items()}
        else:
            found = {term: ("teach/glossary", f"#term-{nodes.make_id(terms)}") for terms in TERMS for term in terms.split(", ")
                     if term not in AMBIGUOUS}
        names = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
        for text in list(self.document.findall(nodes.Text)):
            above = text.parent
            if isinstance(above, nodes.paragraph) and (
                    match := re.search(rf"(?<![\w-])({names})(?=s?\b(?!-))", text, re.I)) and match[1].lower() in found:
                to, anchor = found[match[1].lower()] if page == "teach/glossary" else found.pop(match[1].lower())
                link = nodes.reference("", match[1], refuri=relpath(to + ".html", str(Path(page).parent)) + anchor, internal=True)
                if anchor:
                    link["classes"].append("term")
                    link["reftitle"] = TERMS[next(t for t in TERMS if match[1].lower() in t.split(", "))]
                above.replace(text, [nodes.Text(text[:match.start()]), link, nodes.Text(text[match.end():])])

    def reference(self, page, path, content, line=""):
        SOURCES.add(path)
        target = relpath("source/" + path + ".html", str(Path(page).parent)) + line
        return nodes.reference("", "", *content, refuri=target, internal=True)


def write_sources(app, error):
    """Pages that show files, each without the site's navigation."""
    form = HtmlFormatter(lineanchors="L", linenos="inline", style=pygments_style)
    for path in () if error else sorted(SOURCES):
        try:
            lexer = get_lexer_for_filename(path)
        except ValueError:
            lexer = TextLexer()
        page = Path(app.outdir, "source", path + ".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        top = "../" * (path.count("/") + 1)
        page.write_text(SOURCE.format(path=path, top=top, text=highlight(Path(app.srcdir, path).read_text(), lexer, form)))


def setup(app):
    app.connect("source-read", of_the_tree)
    app.connect("build-finished", write_sources)
    app.add_transform(Links)
    app.add_html_math_renderer("mathml", (math, None), (math, None))
