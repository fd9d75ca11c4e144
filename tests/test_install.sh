#!/bin/sh
# Installs the library into a temporary folder and uses it from outside:  tests/test_install.sh [build]
# The library exports only sb_ names, each header compiles alone in C and in C++, and programs build with
# pkg-config and run: README.md's first C program; those of examples/, which must learn, one of them also
# with libsoftback.a alone, one with CMake, and one with softback as a Meson subproject; an operation, whose
# wrong gradient is found; one in C++; and a model, whose training is killed, resumes, ends with the bytes of
# an uninterrupted run, and gives the same on two ranks. The manual page and the completions are valid.
# Uses the given build folder, or build/, or makes one.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=${1:-build}
if [ ! -f "$build/build.ninja" ]; then
    build=$work/build
    meson setup "$build" -Dtests=disabled -Dcuda=disabled >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
fi
. tests/installed.sh
fail() {
    echo "install: $*" >&2
    exit 1
}

foreign=$(nm -D --defined-only "$LD_LIBRARY_PATH/libsoftback.so" | awk '$3 !~ /^sb_/ {print $3}')
[ -z "$foreign" ] || fail "libsoftback.so exports" $foreign
echo "install: libsoftback.so exports $(nm -D --defined-only "$LD_LIBRARY_PATH/libsoftback.so" |
    wc -l) names, all sb_"

# What the library exports, and what its installed headers declare, are the same names.
include=$(find "$work/root" -path '*/include/softback')
nm -D --defined-only "$LD_LIBRARY_PATH/libsoftback.so" | awk '{print $3}' | sort >"$work/exported"
echo '#include <softback/softback.h>' | cc -std=c17 $(pkg-config --cflags softback) -E -P -x c - |
    tr '\n' ' ' | grep -oE '__attribute__\(\(visibility\("default"\)\)\) [^(;]*\(' |
    grep -oE 'sb_[a-z0-9_]+ *\($' | tr -d ' (' | sort -u >"$work/declared"
cmp "$work/exported" "$work/declared" ||
    fail "exported, or declared, but not both:" $(comm -3 "$work/exported" "$work/declared")

cpp=$(command -v c++) || echo "install: no C++ compiler here, so C++ is not tested"
for header in $(cd "$include" && find . -name '*.h'); do
    echo "#include <softback/$header>" |
        cc -std=c17 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags softback) -fsyntax-only \
            -x c - || fail "$header does not compile alone"
    [ -z "$cpp" ] || echo "#include <softback/$header>" |
        c++ -std=c++17 -Wall -Wextra -Werror $(pkg-config --cflags softback) -fsyntax-only \
            -x c++ - || fail "$header does not compile alone in C++"
done
echo "install: each of $(find "$include" -name '*.h' | wc -l) headers compiles alone"

build() { # build NAME SOURCE: builds a program, in C or C++
    case $2 in
    *.cpp) compiler='c++ -std=c++17' ;;
    *) compiler='cc -std=c17' ;;
    esac
    $compiler -Wall -Wextra -Werror "$2" $(pkg-config --cflags --libs softback) -lm -o "$work/$1" ||
        fail "$1 does not build"
}
run() { # run NAME SOURCE: builds one, and runs it
    build "$@"
    "$work/$1" <README.md >"$work/out" 2>&1 && failed= || failed=yes
    sed "s|.*\r||; s|^|install: $1: |" "$work/out" # without the lines that were overwritten
    [ -z "$failed" ] || fail "$1 fails"
}
awk '/^```/ && inside {exit} inside {print} /^```c$/ {inside = 1}' README.md >"$work/readme.c"
run readme "$work/readme.c"
for source in examples/*.c ${cpp:+examples/*.cpp}; do
    run "$(basename "$source")" "$source"
    [ "$source" != examples/gpt.c ] || cp "$work/out" "$work/gpt.out"
done
awk '/step 600/ {loss = $NF} END {exit !(loss > 0 && loss < 2.2)}' "$work/gpt.out" ||
    fail "gpt.c: its last loss is not below 2.2"
run softplus tests/outside/softplus.c

# The static library, with what pkg-config --static lists, makes a program that needs no libsoftback.so, and
# that may define a name of softback's own, since the API's names alone are global.
archive=$LD_LIBRARY_PATH/libsoftback.a
foreign=$(nm -g --defined-only "$archive" | awk 'NF == 3 && $3 !~ /^sb_/ {print $3}')
[ -z "$foreign" ] || ! command -v objcopy >/dev/null || fail "libsoftback.a defines" $foreign
static=$(pkg-config --static --libs softback | sed "s|-lsoftback\\b|$archive|")
echo "const char ${foreign:+not_}shape_equal[] = \"the program's own\";" >"$work/own.c"
cc -std=c17 examples/vision.c "$work/own.c" $(pkg-config --cflags softback) $static -lm -o "$work/static" ||
    fail "examples/vision.c does not link with libsoftback.a"
! ldd "$work/static" | grep -q libsoftback || fail "the static program needs libsoftback.so"
"$work/static" >"$work/out" 2>&1 || fail "the static program fails: $(cat "$work/out")"
echo "install: libsoftback.a links alone"

if command -v cmake >/dev/null; then
    cmake -S examples/cmake -B "$work/cmake" -DCMAKE_PREFIX_PATH="${include%/include/*}" >"$work/out" 2>&1 &&
        cmake --build "$work/cmake" >>"$work/out" 2>&1 && "$work/cmake/train" >>"$work/out" 2>&1 ||
        fail "examples/cmake: $(cat "$work/out")"
    for version in 0.1 99; do
        sed "s/softback [0-9.]* REQUIRED/softback $version REQUIRED/" examples/cmake/CMakeLists.txt \
            >"$work/CMakeLists.txt"
        ! cmake -S "$work" -B "$work/cmake-$version" -DCMAKE_PREFIX_PATH="${include%/include/*}" \
            >"$work/out" 2>&1 || fail "CMake finds version $version"
        grep -q 'not accepted' "$work/out" || fail "CMake and version $version: $(cat "$work/out")"
    done
    echo "install: examples/cmake builds and trains"
else
    echo "install: cmake is missing, so examples/cmake is not tested"
fi
if [ -n "$cpp" ]; then
    run plus tests/outside/plus.cpp
    [ "$(cut -d' ' -f2 "$work/out")" = "$(pkg-config --modversion softback)" ] ||
        fail "sb_version() is not the package's version"
fi

# A Meson subproject: its dependency is found, with a header that compiles and the library to link with.
mkdir -p "$work/meson/subprojects"
ln -s "$PWD" "$work/meson/subprojects/softback"
cp examples/train.c "$work/meson"
cat >"$work/meson/meson.build" <<END
project('outside', 'c', default_options : 'c_std=c17')
softback = dependency('softback', default_options : ['tests=disabled', 'cuda=disabled', 'mpi=disabled'])
executable('train', 'train.c', dependencies : softback)
END
env -u PKG_CONFIG_PATH -u PKG_CONFIG_SYSROOT_DIR \
    meson setup "$work/meson/build" "$work/meson" --force-fallback-for=softback >"$work/out" 2>&1 &&
    ninja -C "$work/meson/build" train.p/train.c.o >>"$work/out" 2>&1 ||
    fail "a Meson subproject: $(cat "$work/out")"
grep -q '^build train: .*libsoftback\.so' "$work/meson/build/build.ninja" ||
    fail "a Meson subproject: the program is not linked with libsoftback.so"
echo "install: works as a Meson subproject"

page=$(find "$work/root" -path '*/share/man/man1/softback.1')
[ -n "$page" ] || fail "there is no manual page"
if man --version 2>/dev/null | grep -q '^man '; then
    man --warnings -l "$page" 2>"$work/warnings" >"$work/out" || fail "the manual page: $(cat "$work/warnings")"
    [ ! -s "$work/warnings" ] || fail "the manual page: $(cat "$work/warnings")"
fi
! command -v mandoc >/dev/null || mandoc -T lint -W warning "$page" || fail "mandoc rejects the manual page"
"$build/softback" --help | awk '/^  [a-z]/ {print $1}' >"$work/commands"
[ -s "$work/commands" ] || fail "softback --help lists no commands"
while read -r command; do
    "$build/softback" "$command" --help | grep -oE '^ {2,6}(-., )?--[a-z0-9-]+' | grep -oE -- '--.*' >"$work/options"
    sed -n "/^\\.SH \"softback $command\"/,/^\\.SH/p" "$page" | tr -d '\\' |
        sed -n 's/.*fB\(--[a-z0-9-]*\)fR.*/\1/p' | cmp - "$work/options" ||
        fail "the manual page has other options of softback $command than --help"
done <"$work/commands"
echo "install: the manual page has the options of $(wc -l <"$work/commands") commands"

complete() { # complete WORD... EXPECTED: what bash offers for the last word
    bash -euc '. "$1"; expected=${*: -1}; COMP_WORDS=("${@:2:$#-2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        [ "$(complete -p softback)" = "complete -o default -F _softback softback" ]
        _softback; [ "${COMPREPLY[*]}" = "$expected" ]' bash \
        "$(find "$work/root" -path '*/share/bash-completion/completions/softback')" "$@" ||
        fail "bash does not complete" "$@"
}
if command -v bash >/dev/null; then
    complete softback tr 'train translate'
    complete softback train --lea --learning-rate
    complete softback translate --top '--top-k --top-p'
    complete softback translate mod '' # a file
    echo "install: bash completes commands and options"
fi

build regression tests/outside/regression.c
train() { # train FILE [STOP]: trains for 23 steps, or is killed before one
    "$work/regression" "$work/$1" 23 ${2:+"$2"} >"$work/$1.out" 2>&1
}
train whole || fail "regression: $(cat "$work/whole.out")"
train half 18 && fail "regression: it was not killed"
train half || fail "regression, resumed: $(cat "$work/half.out")"
cmp "$work/whole" "$work/half" || fail "regression: a resumed run ends with different bytes"
cmp "$work/whole.out" "$work/half.out" || fail "regression: a resumed run prints different numbers"
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
        fail "regression on two ranks: differs by $apart from one"
    echo "install: regression: two ranks train like one, up to $apart"
else
    echo "install: regression: no mpirun, so two ranks are not tested"
fi
