#!/bin/sh
# Runs the commands of README.md: each line of its ```sh blocks, in order, and each `./softback ...` and
# `./run ...` within its text. Their output must contain the lines of its ```text blocks, and each link
# must lead to a file.
#
# tests/readme.sh [BUILD]: a folder with a built library and program, "build" otherwise. Ends with one
# line, "N passed, N failed".
#
# They run as typed in a scratch folder that looks like the tree, with these exceptions:
#
#   ./run, build, test      take minutes: tests/bare.sh runs them, as typed, in a bare Debian
#   pip install .           the same
#   ./run playground        the same; tests/playground.sh runs it
#   ./run site              the same; tests/book.sh makes a site of stand-ins
#   ./run gpu               skipped: needs a GPU and minutes
#   ./run lesson N          lesson 1, which fails because of its hole; tests/lessons.sh tests the others
#   ./run book              skipped without pandoc
#   softback train          with --steps 20
#   softback bench          with --quick
#   mpirun                  skipped without it or the plug-in
#   SOFTBACK_CUDA=emulated  skipped if the emulated device is not built
#   meson install           replaced by tests/installed.sh, which needs no root
set -u
cd "$(dirname "$0")/.." || exit 2
tree=$PWD
build=$(cd "${1:-build}" && pwd) || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/check.sh
. tests/installed.sh

commands() { # one a line, without comments
    awk '/^```sh$/ {inside = 1; next} /^```/ {inside = 0; next} inside' README.md
    awk '/^```/ {inside = !inside; next} !inside' README.md | grep -oE '`\./(softback|run)( [^`]*)?`' | tr -d '`'
}

pairs() { # pairs FROM TO: lines "3 1 4 <tab> 4 1 3", digits and the same reversed
    seq "$1" "$2" | awk '{ a = ""; b = ""; for (i = 1; i <= length($1); i++) {
        c = substr($1, i, 1); a = a (i > 1 ? " " : "") c; b = c (i > 1 ? " " : "") b }
        print a "\t" b }'
}

run() { # run COMMAND: in the scratch folder; its output is kept
    (cd "$work/tree" && eval "$1") >"$work/output" 2>&1 </dev/null
    status=$?
    cat "$work/output" >>"$work/printed"
    return $status
}

skip_command() { # skip_command COMMAND REASON
    echo "readme: $1: $2"
}

try() { # try COMMAND
    case $1 in
    ./run | './run build' | './run test') skip_command "$1" "run by tests/bare.sh" && return ;;
    './run playground') skip_command "$1" "run by tests/playground.sh" && return ;;
    './run site') skip_command "$1" "tests/book.sh makes a site" && return ;;
    'pip install .') skip_command "$1" "run by tests/bare.sh" && return ;;
    './run gpu') skip_command "$1" "needs a GPU" && return ;;
    './run book') command -v pandoc >/dev/null || { skip_command "$1" "pandoc is missing" && return; } ;;
    mpirun*) { command -v mpirun && [ -e "$build/libsoftback_mpi.so" ]; } >/dev/null ||
        { skip_command "$1" "MPI is missing" && return; } ;;
    SOFTBACK_CUDA=*) [ -e "$build/libsoftback_cuda_emulated.so" ] ||
        { skip_command "$1" "built without the emulated device" && return; } ;;
    'meson install -C build') return ;;
    esac
    case $1 in
    './run lesson 1') run "SOFTBACK_BUILD=build $1"; [ $? = 1 ] && grep -q 'NOT YET' "$work/output" ;;
    './run lesson '*) [ -f "$(echo teach/lessons/"$(printf %02d "${1##* }")"_*.md)" ] ;;
    *--help) run "$1" ;;
    *'softback train '*) run "$1 --steps 20" ;;
    './softback bench'*) run "$1 --quick" ;;
    *) run "$1" ;;
    esac
    check $? "$1"
}

mkdir "$work/tree"
ln -s "$tree"/* "$work/tree"
rm -f "$work/tree/softback" "$work/tree/build" "$work/tree/my"
ln -s "$build" "$work/tree/build"
ln -s build/softback "$work/tree/softback"
pairs 1000 1400 >"$work/tree/pairs.tsv"
pairs 2000 2010 >"$work/tree/test.tsv"
pairs 3000 3100 >"$work/tree/more.tsv"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # as CI does
export OMPI_MCA_rmaps_base_oversubscribe=1
: >"$work/output"
commands | sed 's/ *# .*//' | awk '!seen[$0]++' >"$work/commands"
while read -r command; do
    try "$command"
done <"$work/commands"
[ "$passed" -ge 20 ]
check $? "README.md has its commands"

awk '/^```text$/ {inside = 1; next} /^```/ {inside = 0} inside' README.md >"$work/shown"
[ -s "$work/shown" ] && ! grep -vxFf "$work/printed" "$work/shown" >"$work/output"
check $? "the commands print the text that README.md shows"

grep -oE '\]\([^)]*\)' README.md | sed 's/](\(.*\))/\1/' | grep -v '^http' | while read -r link; do
    [ -e "$link" ] || echo "$link"
done >"$work/output"
[ ! -s "$work/output" ]
check $? "each link of README.md leads to a file"
for page in teach/lessons/[0-9]*.md; do
    grep -qF "[$(sed -n '1s/^# [0-9]*\. //p' "$page")]($page)" README.md || echo "$page"
done >"$work/output"
[ ! -s "$work/output" ]
check $? "README.md has the title of each lesson"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
