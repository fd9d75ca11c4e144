#!/bin/sh
# ./run lesson                  lists the lessons: open, begun, done
# ./run lesson N                tests your file of lesson N, my/NN_name.c; the first time, makes it
# ./run lesson N --solution     tests the solution in its place, and says where it is
# ./run lesson --all [--json]   tests all your files; --json: as one JSON document. 0 if each lesson passes
#
# SOFTBACK_BUILD is a folder with a built library ("build" otherwise), SOFTBACK_MY where your files
# are ("my"; compiled, in its .run). A test that takes longer than 20 seconds is stopped.
set -u
cd "$(dirname "$0")/.." || exit 2
lessons=teach/lessons
my=${SOFTBACK_MY:-my}
build=${SOFTBACK_BUILD:-build}

title() { # title NAME: the first line of its page, without the number
    sed -n '1s/^# [0-9]*\. //p' "$lessons/$1.md"
}

state() { # state NAME
    if [ ! -f "$my/$1.c" ]; then
        echo open
    elif [ ! -f "$my/.done/$1" ]; then
        echo "begun, in $my/$1.c"
    elif [ "$(cksum <"$my/$1.c")" = "$(cat "$my/.done/$1")" ]; then
        echo 'done'
    else
        echo "done, and changed since"
    fi
}

list() {
    open=
    for page in "$lessons"/[0-9]*.md; do
        name=$(basename "$page" .md)
        number=${name%%_*}
        printf '  %2d  %-22s %s\n' "${number#0}" "$(title "$name")" "$(state "$name")"
        [ -n "$open" ] || [ -f "$my/.done/$name" ] || open=${number#0}
    done
    echo
    [ -z "$open" ] || echo "Go on with ./run lesson $open, or take any other."
}

# Compiles what is older than its source or than the library: compile SOURCE OBJECT. Messages of the
# compiler pass through.
compile() {
    [ -f "$2" ] && [ -z "$(find -L "$1" $lessons/lesson.h "$build/libsoftback.so" -newer "$2")" ] ||
        ${CC:-cc} -std=c17 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wno-unused-parameter \
            -I "$lessons" -I "$out/include" -iquote . -c "$1" -o "$2"
}

mark_done() { # mark_done NAME
    mkdir -p "$my/.done"
    cksum <"$my/$1.c" >"$my/.done/$1"
}

out=$my/.run
prepare() { # what the tests of all lessons need
    [ -e "$build/libsoftback.so" ] || {
        echo "There is no library in $build; ./run build makes it." >&2
        exit 2
    }
    mkdir -p "$out/include" "$out/run" || exit 2
    ln -sfn "$PWD" "$out/include/softback"
    compile "$lessons/lesson.c" "$out/lesson.o" || exit 2
}

make_test() { # make_test FILE NAME: the program $out/run/NAME
    more=
    case $2 in
    04_* | 07_*) more=$out/reverse.o && compile "$lessons/reverse.c" "$more" || exit 2 ;;
    esac
    compile "$lessons/$2_test.c" "$out/$2_test.o" || exit 2
    rm -f "$out/run/$2.o"
    compile "$1" "$out/run/$2.o" || return 1
    # shellcheck disable=SC2086 # no word when there are no more objects
    ${CC:-cc} -o "$out/run/$2" "$out/$2_test.o" "$out/run/$2.o" "$out/lesson.o" $more \
        -L "$build" -lsoftback -Wl,-rpath,"$(cd "$build" && pwd)" -lm
}

# The number as it is written in file names, or nothing when there is no such lesson.
find_lesson() {
    case $1 in
    [1-9]) set -- "0$1" ;;
    [0-9][0-9]) ;;
    *) return ;;
    esac
    for page in "$lessons/$1"_*.md; do
        [ ! -f "$page" ] || basename "$page" .md
    done
}

# Why a test did not come to its end: ending NAME STATUS
ending() {
    case $2 in
    124 | 137) echo "Stopped after 20 seconds: a loop in $my/$1.c that never ends?" ;;
    1[3-9][0-9]) echo "The program crashed (signal $(($2 - 128))): an index out of range, or NULL written to, in $my/$1.c?" ;;
    esac
}

next_step() { # next_step NAME STATUS
    case $2 in
    0)
        mark_done "$1"
        number=${1%%_*}
        number=$((${number#0} + 1))
        echo "Lesson $((number - 1)) is done."
        if [ -n "$(find_lesson $number)" ]; then
            echo "Next: ./run lesson $number, \"$(title "$(find_lesson $number)")\"."
        else
            echo "That was the last one."
        fi
        ;;
    *)
        ending "$@" | grep . || echo "The page is $lessons/$1.md; your file is $my/$1.c."
        ;;
    esac
}

# The sentences that do not hold with their hints, from a test's output; then what kept the test from its end, of
# the name TEST, if $out/why has lines: failures FORM TEST <OUTPUT. FORM json: members of an array; text: lines.
failures() {
    LC_ALL=C awk -v form="$1" -v test="$2" -v why="$out/why" '
        function quoted(text) {
            gsub(/["\\]/, "\\\\&", text)
            gsub(/\n/, "\\n", text)
            gsub(/[\001-\037]/, " ", text)
            return "\"" text "\""
        }
        function put(sentence, message) {
            if (sentence == "") return
            if (form == "json")
                printf "%s{\"test\": %s, \"message\": %s}", count++ ? ", " : "", quoted(sentence), quoted(message)
            else
                print "        " sentence
        }
        /^  NOT YET  / { put(said, hint); said = substr($0, 12); hint = ""; next }
        said != "" && /^           (->|  ) / { hint = hint (hint == "" ? "" : " ") substr($0, 15); next }
        { put(said, hint); said = "" }
        END {
            put(said, hint)
            while ((getline line <why) > 0)
                message = message (message == "" ? "" : "\n") line
            if (message != "") put(test, message)
        }'
}

# Of each lesson, whether your file passes, and what fails; false if one does not pass: test_all FORM
test_all() {
    first= row='  %2d  %-22s %s\n' next= last=
    [ "$1" = text ] || first='{"lessons": [\n' next=',\n' last=']}' \
        row='  {"lesson": %d, "title": "%s", "state": "%s", "failures": ['
    passed=0 count=0
    for page in "$lessons"/[0-9]*.md; do
        name=$(basename "$page" .md)
        number=${name%%_*} state=fails test=
        : >"$out/why"
        : >"$out/said"
        if [ ! -f "$my/$name.c" ]; then
            state=open
        elif ! make_test "$my/$name.c" "$name" >"$out/why" 2>&1; then
            test="the compiler accepts the file"
        else
            (ulimit -f 2048; timeout -k 1 20 "$out/run/$name"; exit $?) >"$out/said" 2>&1 # 1 MB at most
            status=$? test="the program ends"
            ending "$name" $status >"$out/why" # instead of the compiler's warnings
            [ $status != 0 ] || { state=passes && passed=$((passed + 1)) && mark_done "$name"; }
        fi
        # shellcheck disable=SC2059 # the formats of FORM
        printf "$first$row" "${number#0}" "$(title "$name")" $state
        failures "$1" "$test" <"$out/said" | iconv -c -f UTF-8 -t UTF-8
        printf %s "$last"
        first=$next count=$((count + 1))
    done
    [ "$1" = text ] || printf '\n], "passed": %d, "of": %d}\n' $passed $count
    [ $passed = $count ]
}

case $* in
'')
    list
    exit
    ;;
--all | '--all --json')
    prepare
    [ $# = 2 ] && form=json || form=text
    test_all $form
    exit
    ;;
esac
name=$(find_lesson "$1")
if [ -z "$name" ] || [ $# -gt 2 ] || { [ $# = 2 ] && [ "$2" != --solution ]; }; then
    echo "There is no lesson \"$*\"; ./run lesson lists them." >&2
    exit 2
fi
file=$my/$name.c
if [ $# = 2 ]; then
    file=$lessons/solutions/$name.c
    echo "Lesson ${1#0}, \"$(title "$name")\", with the solution, $file:"
elif [ ! -e "$file" ]; then
    mkdir -p "$my" && cp "$lessons/$name.c" "$file" || exit 2
    echo "Lesson ${1#0}, \"$(title "$name")\". Read $lessons/$name.md (./run book typesets it), then fill"
    echo "the hole in $file and run ./run lesson ${1#0} again. This is what is still wrong:"
else
    echo "Lesson ${1#0}, \"$(title "$name")\", with $file:"
fi
echo
prepare
make_test "$file" "$name" || {
    echo
    echo "The compiler does not accept $file yet."
    exit 1
}
timeout -k 1 20 "$out/run/$name"
status=$?
echo
[ $# = 1 ] && next_step "$name" $status
exit $((status > 0))
