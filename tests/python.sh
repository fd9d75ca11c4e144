#!/bin/sh
# The Python binding:  tests/python.sh [BUILD]
# The package and its generator have at most 1,700 lines by hand, the models of Hugging Face's transformers
# 880, and the tests and the notebooks pass with the package and the library of the build folder
# (SOFTBACK_TEST_LONG=1: with more steps and random programs). What a call costs more than in C, and the
# speed of a training loop in both, are printed. Needs a python3 with NumPy and pytest (SOFTBACK_PYTHON, or
# one that pip makes in a cache folder); without, its last line begins with "skipped: " and it exits with 77.
set -eu
cd "$(dirname "$0")/.."
build=$(cd "${1:-build}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/installed.sh

lines() { # lines FILE...: those of code: no blanks, comments or docstrings
    python3 python/tests/count.py "$@"
}
pretrained=$(lines python/softback/pretrained.py python/softback/families.py)
package=$(($(lines python/softback/[a-z]*.py python/softback/__init__.py) - pretrained))
generator=$(lines python/generate.py python/generator/*.py)
echo "python: $package lines by hand, $generator in the generator, $pretrained for pretrained models"
[ $((package + generator)) -le 1700 ] || {
    echo "python: $((package + generator)) lines by hand, more than 1,700"
    exit 1
}
[ "$pretrained" -le 880 ] || {
    echo "python: $pretrained lines by hand for pretrained models, more than 880"
    exit 1
}

works() {
    "$1" -c 'import numpy, pytest' 2>/dev/null
}
python=${SOFTBACK_PYTHON:-python3}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/softback/python
if ! works "$python"; then
    python=$cache/bin/python
    works "$python" || { python3 -m venv "$cache" && "$python" -m pip install -q numpy pytest; } \
        >"$work/log" 2>&1 || true
fi
modules='matplotlib, mypy, pyright, sentencepiece, tokenizers' # without them, their tests are skipped
if [ "$python" = "$cache/bin/python" ] && ! "$python" -c "import $modules" 2>/dev/null; then
    "$python" -m pip install -q matplotlib mypy 'pyright[nodejs]' sentencepiece tokenizers \
        >>"$work/log" 2>&1 || true
fi
works "$python" || { echo "skipped: python: no NumPy and pytest, and pip cannot install them"; exit 77; }
export PYTHONPATH="$build/python" PYTHONDONTWRITEBYTECODE=1
"$python" -m pytest -q -p no:cacheprovider python/tests

cc -O2 -std=gnu17 -Wall -Wextra -Werror python/tests/call_cost.c $(pkg-config --cflags --libs softback) \
    -o "$work/call_cost"
OMP_NUM_THREADS=1 "$python" python/tests/call_cost.py "$work/call_cost"

cc -O2 -std=c17 examples/gpt.c $(pkg-config --cflags --libs softback) -o "$work/gpt"
"$work/gpt" <README.md | tr '\r' '\n' | grep -a "^step" >"$work/c"
"$python" examples/gpt.py <README.md | tr '\r' '\n' | grep -a "^step" >"$work/python"
cmp "$work/c" "$work/python"
echo "python: examples/gpt.py has the losses of gpt.c: $(tail -n 1 "$work/python")"
