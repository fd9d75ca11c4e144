#!/bin/sh
# Fuzzes the reader of safetensors files:  tests/fuzz.sh [seconds]
# Needs clang with libFuzzer. Exits with 1 if an input crashes the reader, and names that input.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-30}
for clang in ${CLANG:-clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14}; do
    command -v "$clang" >/dev/null && break
done
command -v "$clang" >/dev/null || { echo "fuzz: no clang found; name it in CLANG" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/corpus"
cp tests/golden/*.safetensors "$work/corpus"
echo '#define SOFTBACK_ABI 0' >"$work/abi.h" # no plug-in is opened here
echo '#define SOFTBACK_COMMUNICATOR_ABI 0' >"$work/communicator_abi.h"
echo "fuzz: building with $clang"
"$clang" -std=gnu17 -D_GNU_SOURCE -O1 -g -I. -I"$work" -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=all tests/tensor/fuzz_safetensors.c tests/support/json_memory.c tensor/*.c \
    -ljansson -lm -o "$work/fuzz"
echo "fuzz: running for $seconds seconds from $(ls "$work/corpus" | wc -l) files"
if "$work/fuzz" -max_total_time="$seconds" -max_len=8192 -rss_limit_mb=1024 -timeout=10 \
    -artifact_prefix="$work/" "$work/corpus" >"$work/log" 2>&1; then
    tail -n 1 "$work/log"
    echo "fuzz: no crash"
else
    grep -E -m 1 -A 12 'ERROR|runtime error|does not hold' "$work/log" || tail -n 20 "$work/log"
    found=$(find "$work" -name '*-[0-9a-f]*' ! -path '*/corpus/*' | head -n 1)
    if [ -n "$found" ]; then
        cp "$found" "${TMPDIR:-/tmp}/"
        echo "fuzz: the input is ${TMPDIR:-/tmp}/$(basename "$found")"
    fi
    exit 1
fi
