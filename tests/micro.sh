#!/bin/sh
# teach/micro.c compiles without a warning with gcc and clang, and for 32 bits where the compiler can; it
# learns to reverse with each, and under sanitizers; and its gradient check finds wrong gradients.
# Ends with one line, "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/check.sh
export UBSAN_OPTIONS=halt_on_error=1

compile() { # compile COMPILER SOURCE FLAGS...
    compiler=$1 source=$2
    shift 2
    "$compiler" -std=c11 -O2 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "$@" "$source" -o "$work/micro" -lm \
        >"$work/output" 2>&1
}

try() { # try COMPILER FLAGS...
    label=$* compiler=$1
    shift
    compile "$compiler" teach/micro.c "$@"
    check $? "$label compiles micro.c without a warning"
    "$work/micro" >"$work/output" 2>&1 && grep -q '^256 of 256 digits' "$work/output"
    check $? "$label makes a micro.c that learns to reverse"
}

for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    try $compiler
    try $compiler -O1 -fsanitize=address,undefined -fno-sanitize-recover
    echo '#include <math.h>
        int main(void) { return 0; }' >"$work/empty.c"
    if compile $compiler "$work/empty.c" -m32; then
        try $compiler -m32
    else
        echo "micro: $compiler has no -m32 here"
    fi
done

# Each edit makes a gradient wrong.
while IFS= read -r edit; do
    sed "$edit" teach/micro.c | sed 's/STEPS = 200/STEPS = 1/' >"$work/wrong.c"
    compile cc "$work/wrong.c" -Wno-unused-but-set-variable -Wno-unused-variable
    check $? "with $edit it compiles"
    ! "$work/micro" >"$work/output" 2>&1 && grep -q 'WRONG' "$work/output"
    check $? "the gradient check finds $edit"
done <<'END'
s/a\[j\] \* (g\[j\] - average)/a[j] * (1 - a[j]) * g[j]/
s/ - along \* h\[j\]//
s/ - (j == z->ids\[i\])//
s/d(z, i, j) \* at(w, k, j)/d(z, i, j) * at(x, i, k)/
s/z->b->dx\[i\] += z->dx\[i\]/z->b->dx[i] = z->dx[i]/
END
echo "$passed passed, $failed failed"
[ $failed = 0 ]
