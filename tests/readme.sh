#!/bin/sh
# Runs the commands of README.md and of the pages of docs/: each line of their ```sh blocks, in order, and each
# `./softback ...` and `./run ...` within their text. The ```c blocks of a page, one after the other, are a program,
# and so are its ```python blocks: they must run, too. What is printed must contain the lines of the ```text
# blocks, and each link must lead to a file.
#
# tests/readme.sh [BUILD]: a folder with a built library and program, "build" otherwise. Ends with one
# line, "N passed, N failed".
#
# They run as typed in a scratch folder that looks like the tree, with these exceptions:
#
#   ./run, build, test      take minutes: tests/bare.sh runs them, as typed, in a bare Debian
#   ./run tools, pip install .   the same
#   ./run playground        the same; tests/playground.sh runs it
#   ./run site              the same; tests/site.sh makes a site
#   ./run gpu               skipped: needs a GPU and minutes
#   ./run lesson --all      fails, because of lesson 1's hole
#   ./run lesson N          lesson 1, which fails because of its hole; tests/lessons.sh tests the others
#   ./run book              skipped without pandoc
#   softback train          with --steps 20
#   softback bench          with --quick
#   mpirun                  skipped without it or the plug-in
#   SOFTBACK_CUDA=emulated  skipped if the emulated device is not built
#   meson install           replaced by tests/installed.sh, which needs no root
#   python                  skipped without NumPy
set -u
cd "$(dirname "$0")/.." || exit 2
tree=$PWD
build=$(cd "${1:-build}" && pwd) || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/check.sh
. tests/installed.sh

pages="README.md CONTRIBUTING.md CHANGELOG.md $(echo docs/*.md)"

blocks() { # blocks LANGUAGE PAGE...
    language=$1
    shift
    awk -v begin="\`\`\`$language" '$0 == begin {inside = 1; next} /^```/ {inside = 0} inside' "$@"
}

commands() { # one a line, without comments
    blocks sh $pages
    awk '/^```/ {inside = !inside; next} !inside' $pages | grep -oE '`\./(softback|run)( [^`]*)?`' | tr -d '`'
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
    './run site'*) skip_command "$1" "run by tests/site.sh" && return ;;
    './run tools' | 'pip install .') skip_command "$1" "run by tests/bare.sh" && return ;;
    './run gpu') skip_command "$1" "needs a GPU" && return ;;
    './run book'*) command -v pandoc >/dev/null || { skip_command "$1" "pandoc is missing" && return; } ;;
    mpirun*) { command -v mpirun && [ -e "$build/libsoftback_mpi.so" ]; } >/dev/null ||
        { skip_command "$1" "MPI is missing" && return; } ;;
    SOFTBACK_CUDA=*) [ -e "$build/libsoftback_cuda_emulated.so" ] ||
        { skip_command "$1" "built without the emulated device" && return; } ;;
    'meson install -C build') return ;;
    esac
    case $1 in
    './run lesson 1') run "SOFTBACK_BUILD=build $1"; [ $? = 1 ] && grep -q 'NOT YET' "$work/output" ;;
    './run lesson --all'*) run "SOFTBACK_BUILD=build $1"; [ $? = 1 ] && grep -q '"state": "fails"' "$work/output" ;;
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
[ "$passed" -ge 40 ]
check $? "README.md and docs/ have their commands"

python=${XDG_CACHE_HOME:-$HOME/.cache}/softback/python/bin/python # tests/python.sh makes it
"$python" -c 'import numpy' 2>/dev/null || python=python3
programs=0
for page in $pages; do
    blocks c "$page" >"$work/tree/page.c"
    blocks python "$page" >"$work/tree/page.py"
    if [ -s "$work/tree/page.c" ]; then
        run 'cc -std=c17 -Wall -Wextra -Werror page.c $(pkg-config --cflags --libs softback) -o page && ./page'
        check $? "the C of $page is a program"
        programs=$((programs + 1))
    fi
    if [ -s "$work/tree/page.py" ] && "$python" -c 'import numpy' 2>/dev/null; then
        run "PYTHONPATH='$build/python' '$python' page.py"
        check $? "the Python of $page is a program"
    fi
done
[ $programs -ge 2 ]
check $? "README.md and docs/how_to.md have programs"

blocks text $pages >"$work/shown"
[ -s "$work/shown" ] && ! grep -vxFf "$work/printed" "$work/shown" >"$work/output"
check $? "the commands and programs print the text that the pages show"

for page in $pages; do # what ends with .html and the reference are made with the site, which tests/site.sh checks
    grep -oE '\]\([^)]*\)' "$page" | sed 's/](\([^#]*\).*)/\1/' | grep -vE '^$|^http|^reference/|\.html$' |
        while read -r link; do
            [ -e "$(dirname "$page")/$link" ] || echo "$page: $link"
        done
done >"$work/output"
[ ! -s "$work/output" ]
check $? "each link of README.md and docs/ leads to a file"
python3 tests/sources.py >"$work/output" 2>&1 && [ ! -s "$work/output" ]
check $? "docs/sources.md has each paper that lessons and headers name"
for page in teach/lessons/[0-9]*.md; do
    grep -qF "[$(sed -n '1s/^# [0-9]*\. //p' "$page")]($page)" README.md || echo "$page"
done >"$work/output"
[ ! -s "$work/output" ]
check $? "README.md has the title of each lesson"
sed -n "1s/.* version : '\([^']*\)', license : '\([^']*\)'.*/version: \1\nlicense: \2/p" meson.build >"$work/named"
grep -xFf "$work/named" CITATION.cff >"$work/output"
[ "$(wc -l <"$work/output")" = 2 ]
check $? "CITATION.cff has the version and the licence of meson.build"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
