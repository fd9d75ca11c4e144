#!/bin/sh
# Installs the library into a temporary folder and uses it from outside:  tests/test_install.sh [build]
# The library exports sb_ names only, each header stands alone in C and in C++, and programs build by
# pkg-config and run: README.md's first C program, one with an operation of its own, whose gradient is
# checked and whose spoiled gradient is noticed, and one in C++. Takes `build` from the given folder, or from build/,
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

run() { # run NAME SOURCE [LIBRARIES]: builds a program as users do, and runs it
    name=$1 source=$2
    shift 2
    cc -std=c17 -Wall -Wextra -Werror "$source" $(pkg-config --cflags --libs softback) "$@" \
        -o "$work/$name" || fail "$name does not build"
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
