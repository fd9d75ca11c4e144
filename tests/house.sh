#!/bin/sh
# Measures the size of the house, one line each: lines and files, levels of inclusion in each folder, files
# that name a model of one kind, exported functions.  tests/house.sh [BUILD]
set -eu
cd "$(dirname "$0")/.."
library=${1:-build}/libsoftback.so
rooms="tensor autograd ops nn models teach program cuda mpi"

lines() { # lines FOLDER...: of C, C++ and CUDA
    git ls-files "$@" | grep -E '\.(c|h|cpp|cu|cuh)$' | tr '\n' '\0' | xargs -0 cat | wc -l
}
# shellcheck disable=SC2086 # several folders
echo "library and program: $(lines $rooms core.h softback.h) lines of C"
echo "tests: $(lines tests) lines of C"
echo "files: $(git ls-files | wc -l); of source: $(git ls-files | grep -cE '\.(c|h|cpp|cu|cuh|py|pyi|sh|js|mjs)$')"
tests/layers.sh --levels
echo "files that name sb_seq2seq: $(git grep -l sb_seq2seq -- models program teach | wc -l)"
[ ! -e "$library" ] || echo "exported functions: $(nm -D --defined-only "$library" | grep -c ' T sb_')"
