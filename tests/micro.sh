#!/bin/sh
# teach/micro.c compiles without a warning with gcc and clang, and for 32 bits where the compiler can; it
# learns to reverse with each, and under sanitizers; and its gradient check finds wrong gradients.
# Ends with one line, "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/check.sh

compile() { # compile SOURCE COMPILER FLAGS...
    source=$1
    shift
    "$@" -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "$source" -o "$work/micro" -lm \
        >"$work/output" 2>&1
}

try() { # try STEPS COMPILER FLAGS...: it learns in 200 steps, and in any number its gradients are right
    sed "s/STEPS = 200/STEPS = $1/" teach/micro.c >"$work/micro.c"
    expected='^Divided by |backward|: .*: right' steps=$1
    [ "$1" != 200 ] || expected='^256 of 256 digits'
    shift
    compile "$work/micro.c" "$@"
    check $? "$* compiles micro.c without a warning"
    "$work/micro" >"$work/output" 2>&1
    [ $? -le 1 ] && grep -q "$expected" "$work/output" && ! grep -qE 'runtime error|Sanitizer' "$work/output"
    check $? "$* makes a micro.c that is right after $steps steps"
}

for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    try 200 $compiler -O2
    try 2 $compiler -O1 -g -fsanitize=address,undefined
    echo '#include <math.h>' >"$work/empty.c"
    if compile "$work/empty.c" $compiler -m32 -shared -fPIC; then
        try 200 $compiler -O2 -m32
    else
        echo "micro: $compiler has no -m32 here"
    fi
done

# Weights near which a relu has its kink are left out.
sed 's/HEADS = 2,/HEADS = 1,/; s/STEPS = 200/STEPS = 1/; s/state = 1;/state = 4;/' teach/micro.c >"$work/micro.c"
compile "$work/micro.c" cc -O2 && "$work/micro" | grep -qE '^Divided by .*: right; [1-9][0-9]* left out'
check $? "the gradient check leaves out kinks"

# Each edit makes a gradient wrong.
while IFS= read -r edit; do
    sed "$edit" teach/micro.c | sed 's/STEPS = 200/STEPS = 1/' >"$work/wrong.c"
    compile "$work/wrong.c" cc -O2 -Wno-unused-but-set-variable -Wno-unused-variable
    check $? "with $edit it compiles"
    ! "$work/micro" >"$work/output" 2>&1 && grep -q 'WRONG' "$work/output"
    check $? "the gradient check finds $edit"
done <<'END'
s/a\[j\] \* (g\[j\] - average)/a[j] * (1 - a[j]) * g[j]/
s/ - along \* h\[j\]//
s/ - (j == z->ids\[i\])//
s/d(z, i, j) \* at(w, k, j)/d(z, i, j) * at(x, i, k)/
s/d(x, i, j) += (dh/d(x, i, j) = (dh/
s/a\[j\] \* (g\[j\] - average)/NAN/
END
echo "$passed passed, $failed failed"
[ $failed = 0 ]
