#!/bin/sh
# Includes point downward only: tensor < autograd < ops < nn < models < teach. Tests and softback.h
# stand above them all. cuda/ may use ops and what lies below, mpi/ may use tensor, and nobody uses
# either; MPI's own header is for mpi/ alone. What a portable
# build compiles has nothing to do with files or plug-ins: those are left to the *_files lists of
# meson.build and to what only the program has. Every test is built. Prints each line that breaks this; exits with 1 if there is one.
cd "$(dirname "$0")/.." || exit 2
bad=0
include='^ *# *include +["<](\.\./)*'
files='"tensor/(file|safetensors)|"file\.h|<(fcntl|unistd|dlfcn|dirent|jansson|sys/)'
sources() { # sources ROOMS...: their C and CUDA files
    find "$@" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' 2>/dev/null | sort
}
refuse() { # refuse REASON REGEX FILES...: no line of these files matches
    reason=$1 regex=$2
    shift 2
    grep -nEH "$regex" /dev/null "$@" | sed "s|^|$reason: |" | grep . && bad=1
}
above='tests|softback\.h|cuda|mpi'
for room in teach models nn ops autograd tensor; do
    refuse "$room may not include this" "$include($above)[/\">]" $(sources $room)
    above="$above|$room"
done
refuse 'cuda may not include this' "$include(tests|softback\.h|teach|models|nn)[/\">]" $(sources cuda)
refuse 'mpi may not include this' "$include(tests|softback\.h|teach|models|nn|ops|autograd|cuda)[/\">]" $(sources mpi)
refuse 'MPI is for mpi/ alone' '^ *# *include +<mpi\.h>' $(sources teach models nn ops autograd tensor cuda tests)
left_out=$(sed -n '/^[a-z_]*_files = \[/,/\]/p' meson.build | tr -d "',[]" | awk '
    /=/ { room = $1; sub("_.*", "", room); $1 = $2 = "" }
    { for (i = 1; i <= NF; i++) print room "/" $i }')
for file in $(sources tensor autograd ops nn models | grep -Ev '^models/(explain|program|report)/'); do
    echo "$left_out" | grep -qxF "${file%.*}" ||
        refuse 'a portable build has no files' \
            "^ *# *include +($files)|[^a-z_](fopen|freopen|dlopen|opendir|popen) *\\(" "$file"
done
for test in tests/test_*.c; do
    name=$(basename "$test" .c)
    sed -n '/^tests[a-z_]* = \[/,/\]/p' meson.build | grep -q "'${name#test_}'" ||
        { echo "$test is not built: meson.build does not list it"; bad=1; }
done
exit $bad
