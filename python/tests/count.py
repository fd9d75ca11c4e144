"""How many lines of Python files are code: not blank, and no comment or docstring.  count.py FILE..."""
import ast
import sys
import tokenize

LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
          tokenize.ENCODING}


def code_lines(path):
    with open(path, "rb") as file:
        tokens = [t for t in tokenize.tokenize(file.readline) if t.type not in LAYOUT]
    code = {line for t in tokens for line in range(t.start[0], t.end[0] + 1)}
    with open(path, "rb") as file:
        texts = [node for node in ast.walk(ast.parse(file.read()))  # a text alone: a docstring
                 if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    return len(code - {line for node in texts for line in range(node.lineno, node.end_lineno + 1)})


if __name__ == "__main__":
    print(sum(map(code_lines, sys.argv[1:])))
