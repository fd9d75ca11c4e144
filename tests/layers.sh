#!/bin/sh
# Includes point downward only: tensor < autograd < ops < nn < models < teach < program, and within
# models: text < decoding < data < models itself < training, and within program: screen < options < run <
# kinds < bench < commands. Tests and softback.h are above all of them.
# cuda/ may use ops and folders below it, mpi/ may use tensor, and no folder uses either; only mpi/
# includes MPI's header. Sources of a portable build use neither files nor plug-ins: those after "if not portable"
# in a folder's meson.build, and the program, do. No header includes itself through others,
# and no folder is deeper than ten levels of inclusion. Every test is built. ops/call.c handles bf16 for
# all operations except cast and those with their own bf16 kernels.
# Prints each line that breaks a rule; exits with 1 if there is one. --levels also prints how many levels
# each folder has.
cd "$(dirname "$0")/.." || exit 2
bad=0
files='"tensor/(file|safetensors)|"file\.h|<(fcntl|unistd|dlfcn|dirent|jansson|sys/)'
sources() { # sources ROOMS...: their C and CUDA files
    find "$@" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' 2>/dev/null | sort
}
refuse() { # refuse REASON REGEX FILES...: no line of these files matches
    reason=$1 regex=$2
    shift 2
    grep -nEH "$regex" /dev/null "$@" | sed "s|^|$reason: |" | grep . && bad=1
}
refuse 'only mpi/ uses MPI' '^ *# *include +<mpi\.h>' \
    $(sources program teach models nn ops autograd tensor cuda tests)

for file in ops/*.c; do
    case $file in
    ops/call.c | ops/cast.c | ops/layer_norm.c | ops/linear.c | ops/linear_cross_entropy.c | \
        ops/slice.c | ops/attention.c | ops/attention_call.c | ops/cross_entropy.c) ;;
    *) refuse 'ops/call.c handles bf16' '[Bb][Ff]16' "$file" ;;
    esac
done

# Every inclusion of a file of softback, as "FILE INCLUDED", relative to the root.
inclusions() {
    sources program teach models nn ops autograd tensor cuda mpi |
        xargs grep -HoE '^ *# *include +["<][^">]+' | sed 's/: *# *include *["<]/ /' | awk '
        function exists(path, line) { return (getline line <path) >= 0 && close(path) == 0 }
        {
            folder = $1
            sub(/\/[^\/]*$/, "", folder)
            beside = folder "/" $2
            while (sub(/[^\/]+\/\.\.\//, "", beside));
            print $1, exists(beside) ? beside : $2
        }'
}
inclusions=$(mktemp)
trap 'rm -f "$inclusions"' EXIT
inclusions >"$inclusions"

awk '
    BEGIN {
        n = split("tensor autograd ops nn models/text models/decoding models/data models " \
                  "models/training teach program/screen program/options program/run program/kinds " \
                  "program/bench program/commands program", order, " ")
        for (i = 1; i <= n; i++) level[order[i]] = i
        level["cuda"] = level["ops"] + 0.5
        level["mpi"] = level["tensor"] + 0.5
    }
    function room(path) {
        while (sub(/\/[^\/]*$/, "", path)) if (path in level) return path
        return path == "softback.h" ? path : ""
    }
    {
        from = room($1)
        to = room($2)
        if ($2 == "softback.h" || $2 ~ /^tests\//) to = "above"
        if (to == "" || to == from) next
        if (to == "above" || to == "cuda" || to == "mpi" || level[to] > level[from]) {
            print from " may not include " $1 ": " $2
            bad = 1
        }
    }
    END { exit bad }' "$inclusions" || bad=1

left_out=$(for folder in tensor autograd ops nn models; do
    sed -n '/^if not portable/,/^endif/p' $folder/meson.build | grep -o "[a-z_0-9/]*\.c" | sed "s|^|$folder/|"
done)
for file in $(sources tensor autograd ops nn models); do
    echo "$left_out" | grep -qxF "${file%.*}.c" ||
        refuse 'a portable build has no files' \
            "^ *# *include +($files)|[^a-z_](fopen|freopen|dlopen|opendir|popen) *\\(" "$file"
done
# The rows of tests/meson.build: 'folder' : ['name', ...], and a file in C++ that includes its test.
built=$(tr -d '\n' <tests/meson.build | grep -o "'[a-z/]*' : \[[^]]*" |
    awk -F"'" '{ for (i = 4; i <= NF; i += 2) print $2 "/" $i }'
    grep -o "'whole/[a-z_]*\.cpp'" tests/meson.build | tr -d "'" | sed 's/\.cpp//')
for test in $(find tests -name 'test_*.c'); do
    name=${test#tests/}
    echo "$built" | grep -qxF "$(dirname "$name")/$(basename "$name" .c | sed 's/^test_//')" ||
        { echo "$test is not built: tests/meson.build does not list it"; bad=1; }
done

# Levels of inclusion within a folder: a file is one level above the highest that it includes.
awk '
    function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
    function height(file, i, n, h, part) {
        if (file in known) return known[file]
        if (file in open_now) { print file " includes itself through others"; bad = 1; return 0 }
        open_now[file] = 1
        n = split(below[file], part, " ")
        for (i = 1; i <= n; i++)
            if ((h = height(part[i])) > known_below[file]) known_below[file] = h
        delete open_now[file]
        return known[file] = known_below[file] + 1
    }
    folder($1) == folder($2) { below[$1] = below[$1] " " $2 }
    END {
        for (file in below) {
            n = height(file)
            if (n > levels[folder(file)]) levels[folder(file)] = n
            if (n > 10) { print file " is " n " levels deep, more than 10"; bad = 1 }
        }
        if (shown) for (f in levels) print f ": " levels[f] " levels of inclusion" | "sort"
        exit bad
    }' shown="$([ "${1:-}" != --levels ] || echo 1)" "$inclusions" || bad=1
exit $bad
