#!/bin/sh
# Fuzzes the readers of files:  tests/fuzz.sh [seconds [reader...]]
# Readers: safetensors (the default), pairs, metadata, log; each runs for so many seconds. Needs clang
# with libFuzzer. Exits with 1 when an input crashes a reader, and names that input.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-30}
[ $# = 0 ] || shift
[ $# != 0 ] || set -- safetensors
for clang in ${CLANG:-clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14}; do
    command -v "$clang" >/dev/null && break
done
command -v "$clang" >/dev/null || { echo "fuzz: no clang found; name it in CLANG" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strict='-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all'

# The library without what slows it down or is not read: one instruction set, no BLAS, no threads.
build_library() {
    [ ! -d "$work/library" ] || return 0
    echo "fuzz: building the library with $clang"
    CC=$clang meson setup "$work/library" -Dcuda=disabled -Dtests=disabled -Dopenmp=disabled \
        -Dblas=none -Dinstruction_sets=baseline -Db_sanitize=address,undefined -Db_lundef=false \
        -Dbuildtype=debugoptimized -Dc_args=-fsanitize=fuzzer-no-link >"$work/log" 2>&1 &&
        ninja -C "$work/library" softback >>"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
}

# Makes $work/fuzz and seeds in $work/corpus.
prepare() { # prepare READER
    rm -rf "$work/corpus" "$work/fuzz"
    mkdir "$work/corpus"
    case $1 in
    safetensors)
        cp tests/golden/*.safetensors "$work/corpus"
        echo '#define SOFTBACK_ABI 0' >"$work/abi.h" # no plug-in is opened here
        echo '#define SOFTBACK_COMMUNICATOR_ABI 0' >"$work/communicator_abi.h"
        echo "fuzz: building with $clang"
        # shellcheck disable=SC2086 # several words
        "$clang" -std=gnu17 -D_GNU_SOURCE -O1 -g -I. -I"$work" $strict tests/tensor/fuzz_safetensors.c \
            tests/support/json_memory.c tensor/*.c -ljansson -lm -o "$work/fuzz"
        return
        ;;
    pairs)
        source=tests/models/text/fuzz_pairs.c
        printf 'a b\tc d\n\303\251\t\346\227\245\nno tab\n\t\n' >"$work/corpus/pairs"
        ;;
    metadata)
        source=tests/models/training/fuzz_metadata.c
        for file in tests/golden/*.safetensors; do # the text that the header quotes
            head -c $((8 + $(od -An -tu4 -N4 "$file"))) "$file" | tail -c +9 |
                sed -n 's/.*"softback":"\({.*}\)"}.*/\1/p' | sed 's/\\\(.\)/\1/g' \
                >"$work/corpus/$(basename "$file")"
        done
        ;;
    log)
        source=tests/teach/fuzz_log.c
        cp tests/golden/*.jsonl "$work/corpus"
        ;;
    *)
        echo "fuzz: \"$1\" is none of safetensors, pairs, metadata, log" >&2
        exit 2
        ;;
    esac
    build_library
    # shellcheck disable=SC2086 # several words
    "$clang" -std=gnu17 -D_GNU_SOURCE -O1 -g -I. $strict "$source" "$work"/library/teach/libexplain.a \
        "$work"/library/libsoftback_core.a -Wl,--start-group "$work"/library/ops/lib*.a -Wl,--end-group \
        -ljansson -lm -ldl -lpthread -o "$work/fuzz"
}

for reader; do
    prepare "$reader"
    echo "fuzz: $reader: running for $seconds seconds from $(ls "$work/corpus" | wc -l) files"
    if "$work/fuzz" -max_total_time="$seconds" -max_len=8192 -rss_limit_mb=1024 -timeout=10 \
        -artifact_prefix="$work/" "$work/corpus" >"$work/log" 2>&1; then
        tail -n 1 "$work/log"
        echo "fuzz: $reader: no crash"
        continue
    fi
    grep -E -m 1 -A 12 'ERROR|runtime error|does not hold' "$work/log" || tail -n 20 "$work/log"
    found=$(find "$work" -maxdepth 1 -name '*-[0-9a-f]*' | head -n 1)
    if [ -n "$found" ]; then
        cp "$found" "${TMPDIR:-/tmp}/"
        echo "fuzz: the input is ${TMPDIR:-/tmp}/$(basename "$found")"
    fi
    exit 1
done
