"""Whether the formulas of a page of HTML are MathML:  formulas.py PAGE [MARKDOWN...]
Each one is well-formed, has elements of MathML Core with as many children as they need, and comes from
a $formula$ of the Markdown; outside of formulas and code no dollar is left. Prints what is wrong."""
import re
import sys
from xml.etree import ElementTree

CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "mroot": 2, "msubsup": 3, "munderover": 3}
CHILDREN |= dict.fromkeys(("mi", "mn", "mo", "mtext", "mspace", "annotation"), 0)
GROUPS = {"math", "mrow", "msqrt", "mstyle", "mtable", "mtr", "mtd", "semantics"}


def wrong_in(element):
    name, children, text = element.tag.split("}")[1], list(element), (element.text or "").strip()
    if name not in GROUPS and len(children) != CHILDREN.get(name):
        yield f"{name} with {len(children)} children"
    if bool(text) != (CHILDREN.get(name) == 0) and name != "mspace":
        yield f"{name} with the text {text!r}"
    for child in children:
        yield from wrong_in(child)


def without_code(markdown):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"(?ms)^```.*?^```$", "", markdown))


page = open(sys.argv[1]).read()
formulas = re.findall(r"<math .*?</math>", page, re.S)
for formula in formulas:
    for wrong in wrong_in(ElementTree.fromstring(formula)):
        print(wrong, "in", re.search(r"x-tex\">(.*?)</annotation", formula, re.S).group(1))
rest = re.sub(r"(?s)<math .*?</math>|<(pre|code|style)\b.*?</\1>|<img [^>]*>", "", page)
print(*re.findall(r".*(?:\$|\\[a-z]+).*", rest), sep="\n", end="")
written = sum(without_code(open(name).read()).replace("$$", "$").count("$") for name in sys.argv[2:])
if written != 2 * len(formulas):
    print(f"{len(formulas)} formulas from {written} dollars")
sys.exit(len(formulas) < 200)
