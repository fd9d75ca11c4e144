#!/bin/sh
# Installs the library into a temporary folder and uses it from outside:  tests/test_install.sh [build]
# The library exports sb_ names only, each header stands alone in C and in C++, and programs build by
# pkg-config and run: README.md's first C program; one with an operation of its own, whose gradient is
# checked and whose spoiled gradient is noticed; one in C++; and one with a model of its own, which is
# killed, goes on, ends with the bytes of a run that was not, and learns the same on two ranks. Takes
# `build` from the given folder, or from build/,
# or makes one.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=${1:-build}
if [ ! -f "$build/build.ninja" ]; then
    build=$work/build
    meson setup "$build" -Dtests=disabled -Dcuda=disabled >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
fi
meson install -C "$build" --destdir "$work/root" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
package=$(find "$work/root" -name softback.pc)
export PKG_CONFIG_PATH="${package%/*}" PKG_CONFIG_SYSROOT_DIR="$work/root"
LD_LIBRARY_PATH=$work/root$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --variable=libdir softback)
export LD_LIBRARY_PATH
unset OPENBLAS_CORETYPE
export GOMP_SPINCOUNT=1000 # as the program softback sets for itself: others may compute here too
fail() {
    echo "install: $*" >&2
    exit 1
}

foreign=$(nm -D --defined-only "$LD_LIBRARY_PATH/libsoftback.so" | awk '$3 !~ /^sb_/ {print $3}')
[ -z "$foreign" ] || fail "libsoftback.so exports" $foreign
echo "install: libsoftback.so exports $(nm -D --defined-only "$LD_LIBRARY_PATH/libsoftback.so" |
    wc -l) names, all sb_"

cpp=$(command -v c++) || echo "install: no C++ compiler here, so nothing is tried in C++"
include=$(find "$work/root" -path '*/include/softback')
for header in $(cd "$include" && find . -name '*.h'); do
    echo "#include <softback/$header>" |
        cc -std=c17 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags softback) -fsyntax-only \
            -x c - || fail "$header does not stand alone"
    [ -z "$cpp" ] || echo "#include <softback/$header>" |
        c++ -std=c++17 -Wall -Wextra -Werror $(pkg-config --cflags softback) -fsyntax-only \
            -x c++ - || fail "$header does not stand alone in C++"
done
echo "install: each of $(find "$include" -name '*.h' | wc -l) headers stands alone"

build() { # build NAME SOURCE [LIBRARIES]: builds a program as users do
    name=$1 source=$2
    shift 2
    cc -std=c17 -Wall -Wextra -Werror "$source" $(pkg-config --cflags --libs softback) "$@" \
        -o "$work/$name" || fail "$name does not build"
}
run() { # run NAME SOURCE [LIBRARIES]: builds one, and runs it
    build "$@"
    "$work/$name" >"$work/out" 2>&1 && failed= || failed=yes
    sed "s|^|install: $name: |" "$work/out"
    [ -z "$failed" ] || fail "$name fails"
}
if [ -f README.md ]; then
    awk '/^```/ && inside {exit} inside {print} /^```c$/ {inside = 1}' README.md >"$work/readme.c"
    run readme "$work/readme.c"
fi
run softplus tests/outside/softplus.c -lm
if [ -n "$cpp" ]; then
    c++ -std=c++17 -Wall -Wextra -Werror tests/outside/plus.cpp \
        $(pkg-config --cflags --libs softback) -o "$work/plus" || fail "the C++ program does not build"
    out=$("$work/plus") || fail "the C++ program fails: $out"
    echo "install: $out"
    [ "$(echo "$out" | cut -d' ' -f2)" = "$(pkg-config --modversion softback)" ] ||
        fail "sb_version() is not the package's version"
fi

build regression tests/outside/regression.c
learn() { # learn FILE [STOP]: trains for 23 steps, or is killed before one
    "$work/regression" "$work/$1" 23 ${2:+"$2"} >"$work/$1.out" 2>&1
}
learn whole || fail "regression: $(cat "$work/whole.out")"
learn half 18 && fail "regression: it was to be killed"
learn half || fail "regression, resumed: $(cat "$work/half.out")"
cmp "$work/whole" "$work/half" || fail "regression: a run that was resumed ends with other bytes"
cmp "$work/whole.out" "$work/half.out" || fail "regression: a run that was resumed ends otherwise"
echo "install: regression: a run that was killed and resumed ends with the same bytes"

plugin=$(find "$work/root" -name libsoftback_mpi.so)
if [ -n "$plugin" ] && mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    export SOFTBACK_MPI="$plugin" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mpirun --oversubscribe --bind-to none -n 2 "$work/regression" "$work/shared" 23 \
        >"$work/shared.out" 2>&1 || fail "regression on two ranks: $(cat "$work/shared.out")"
    apart=$(paste "$work/whole.out" "$work/shared.out" | awk '
        NF != 4 || $1 != $3 { print "lines differ"; exit }
        { d = $2 > $4 ? $2 - $4 : $4 - $2; m = d > m ? d : m }
        END { printf "%g\n", m }')
    awk -v apart="$apart" 'BEGIN { exit !(apart + 0 == apart && apart <= 1e-12) }' ||
        fail "regression on two ranks: $apart apart from one"
    echo "install: regression: two ranks learn what one does, to $apart"
else
    echo "install: regression: no mpirun, so not on two ranks"
fi
