#!/bin/sh
# Each lesson's test fails with the hole, passes with the solution, and names the mistakes of
# teach/lessons/mistakes.tsv. Then teach/lesson.sh is tested.
#
# tests/lessons.sh [BUILD [NN...]]: BUILD is a folder with a built library; only lessons NN. Ends
# with one line, "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:-build}
[ $# = 0 ] || shift
lessons=teach/lessons
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
tab=$(printf '\t')

check() { # check STATUS SENTENCE: counts it; shows the last output if it failed
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $2"
        sed 's/^/    /' "$work/output"
    fi
}

run() { # run ARGUMENTS: of teach/lesson.sh, into $work/output
    SOFTBACK_BUILD=$build SOFTBACK_MY=$work/my teach/lesson.sh "$@" >"$work/output" 2>&1
}

shows() { # shows WORDS, on any number of lines
    tr -s ' \n' '  ' <"$work/output" | grep -qF -e "$1"
}

quiet() { # no compiler warning
    ! shows 'warning:'
}

try_lesson() { # try_lesson NAME
    number=${1%%_*}
    run "$number"
    [ $? = 1 ] && shows 'NOT YET' && quiet
    check $? "lesson $number fails with the hole"
    cp "$lessons/solutions/$1.c" "$work/my/$1.c"
    run "$number" && ! shows 'NOT YET' && shows 'is done' && quiet
    check $? "lesson $number passes with the solution"
    mistakes=0
    while IFS=$tab read -r lesson expected edit; do
        [ "$lesson" = "$number" ] || continue
        sed -e "$edit" "$lessons/solutions/$1.c" >"$work/my/$1.c"
        ! cmp -s "$work/my/$1.c" "$lessons/solutions/$1.c" && ! run "$number" &&
            [ -n "$expected" ] && shows "$expected"
        check $? "lesson $number says: $expected"
        mistakes=$((mistakes + 1))
    done <"$lessons/mistakes.tsv"
    [ $mistakes -ge 2 ]
    check $? "lesson $number has at least two mistakes"
}

# A number of a page is the one that its solution prints: agree NUMBER WORDS
agree() {
    page=$(echo "$lessons/$1"_*.md)
    run "${1#0}" --solution
    shows "$2" && tr -s ' \n' '  ' <"$page" | grep -qF -e "$2"
    check $? "lesson $1 and its page both say: $2"
}

# One line of words, its formulas as ASCII
flat() {
    tr -s ' \n' '  ' | sed 's/ $//; s/\\partial /d/g; s/\\\(text\|mathrm\)//g; s/[${}`]//g'
}

# What is known about wrong gradients is said in one way.
try_statement() {
    statement=$(sed -n '/^The Jacobian of softmax/,/^$/p' teach/wrong_gradients.md | flat)
    cat "$lessons"/04_*.md | flat >"$work/output"
    [ -n "$statement" ] && grep -qF -e "$statement" "$work/output"
    check $? "lesson 04 states what wrong_gradients.md does"
    flat <teach/glossary.md >"$work/output"
    shows 'from an imaginary step, without subtraction and so without cancellation'
    check $? 'the glossary: a complex step cancels no digits, but its result is rounded'
    sed 's/<[^>]*>//g' teach/playground/page.html | flat >"$work/output"
    for words in 'one of the scores s, so its rows sum to 0' 'one of g, so its columns sum to 0' \
        'Of these, only a wrong rule that keeps both learns fully, and only at the small rate' \
        'the key of each position, its own included'; do
        shows "$words"
        check $? "the live page says: $words"
    done
    [ ! -x "$build/softback" ] && return
    "$build/softback" explain wrong-gradient --steps 1 >"$work/output" 2>&1
    flat <"$work/output" | grep -qF -e "$statement"
    check $? "softback explain wrong-gradient states what wrong_gradients.md does"
    # the tables of lesson and explain, row by row, are those of the measured table (the live page makes its
    # own of it): columns 4 to 8, what they ignore, and their ranges at rates up to 0.003 and at 0.01
    awk -F ' *[|] *' '
        function take(key, cell,  x) {
            split(cell, x, " ")
            if (!(key in low) || x[1] < low[key]) low[key] = x[1]
            if (x[1] > high[key]) high[key] = x[1]
        }
        function range(key) { return (low[key] < high[key] ? low[key] " to " : "") high[key] " %" }
        /has the property/ { gsub(/[$]/, ""); for (c = 4; c <= 8; c++) ignores[c] = $c }
        /^[|] (copy|reverse|sort)/ {
            for (c = 4; c <= 8; c++) take(c " " ($3 < 0.01), $c)
        }
        END {
            for (c = 4; c <= 8; c++) print ignores[c] "|" range(c " 1") "|" range(c " 0")
        }' teach/wrong_gradients.md >"$work/ranges"
    awk -F ' *[|] *' '/[|] ignores/ { rows = 7 } --rows >= 0 && rows < 5 { gsub(/[$]/, ""); print $3 "|" $4 "|" $5 }' \
        "$lessons"/04_*.md >"$work/lesson"
    awk -F '   *' '/^  ds  .*ignores/ { rows = 6 } --rows >= 0 && rows < 5 { print $3 "|" $4 "|" $5 }' "$work/output" >"$work/explain"
    for where in lesson explain; do
        diff "$work/ranges" "$work/$where" >"$work/output"
        check $? "the table of $where has the measured ranges"
    done
}

try_numbers() {
    agree 02 '0.6381 0.2347 0.0954 0.0318'
    agree 02 '0.2309 -0.1498 -0.0609 -0.0203'
    agree 06 'overflows when logits are 710 apart'
    agree 07 '0.83 +- 0.02'
    agree 07 '1.28 +- 0.09'
    run 7 --solution # |dq| raw over |dq| with the factor, without errors: fields 4 and 7
    words=$(sed 's/+- *[0-9.]*//g; s/%//g' "$work/output" | awk '$1 ~ /^(16|64|256|1024)$/ {
        x = $4 / $7; if (!low || x < low) low = x; if (x > high) high = x }
        END { printf "%.1f to %.1f times as large", low, high }')
    flat <"$lessons/07_saturated_rows.md" | grep -qF -e "it is $words"
    check $? "lesson 07 says what the table shows: $words"
    for lesson in 11 12; do
        run $lesson --solution && shows ' +- '
        check $? "lesson $lesson shows the standard error of its share of right symbols"
    done
    agree 09 'the row would be 8.0 MB'
}

try_script() {
    rm -rf "$work/my"
    run && shows 'One row open' && shows 'Go on with ./run lesson 1,' && [ ! -e "$work/my" ]
    check $? 'the list shows lesson 1 as open, and makes no file'
    run 1
    echo '/* mine */' >>"$work/my/01_one_row.c"
    run 1
    grep -q '/\* mine \*/' "$work/my/01_one_row.c"
    check $? "a learner's file is not overwritten"
    run 1 --solution && grep -q '/\* mine \*/' "$work/my/01_one_row.c" && run && shows 'begun'
    check $? 'the solution passes, and changes neither file nor state'
    cp "$lessons/solutions/01_one_row.c" "$work/my"
    run 1 && run && shows 'One row done' && shows 'Go on with ./run lesson 2,'
    check $? 'the list shows lesson 1 as done, and the next one'
    echo '/* later */' >>"$work/my/01_one_row.c"
    run && shows 'changed since'
    check $? 'the list shows that the file was changed since'
    echo 'int;;; x' >>"$work/my/01_one_row.c"
    ! run 1 && shows '01_one_row.c:' && shows 'error:' && shows 'does not accept'
    check $? "the compiler's message is shown"
    printf '#include "lesson.h"\nvoid softmax_row(int64_t n, const double *x, double *y)\n%s\n' \
        '{ (void)x; *(volatile double *)(n ? (double *)0 : y) = 1; }' >"$work/my/01_one_row.c"
    ! run 1 && shows 'crashed'
    check $? 'a crash is reported'
    ! run 13 && shows 'no lesson' && ! run x && shows 'no lesson' && ! run 1 2 && shows 'no lesson'
    check $? 'an unknown lesson is refused'
}

# What a teacher gets of a student's files: of each lesson its state, and what fails.
try_class() {
    rm -rf "$work/my"
    mkdir "$work/my"
    cp "$lessons"/solutions/*.c "$work/my"
    run --all --json && python3 -m json.tool "$work/output" >/dev/null &&
        [ "$(grep -c '"passes", "failures": \[\]' "$work/output")" = 12 ]
    check $? 'all lessons with their solutions pass'
    rm "$work/my"/0[6-9]* "$work/my"/1*
    cp "$lessons/02_everyone_pays.c" "$work/my"
    sed 's/(g\[i\] - average)/g[i]/' "$lessons/solutions/03_never_build_j.c" >"$work/my/03_never_build_j.c"
    printf '/* "\\ \377\t*/ int x = "a";\n' >"$work/my/04_the_wrong_gradient.c"
    printf '#include "lesson.h"\nfloat check_step(void)\n{\n    abort();\n}\n' |
        sed '1i #include <stdlib.h>' >"$work/my/05_how_to_trust_it.c"
    sed -n '/^bool gradient_holds/,$p' "$lessons/05_how_to_trust_it.c" >>"$work/my/05_how_to_trust_it.c"
    run --all
    [ $? = 1 ] && shows 'One row passes 2 Everyone pays fails each row sums to 0' && shows 'p - y open'
    check $? 'without --json it lists what fails'
    run --all --json
    [ $? = 1 ] && python3 - "$work/output" <<'END' >"$work/said" 2>&1
import json, sys
given = json.load(open(sys.argv[1]))
states = [lesson["state"] for lesson in given["lessons"]]
assert states == ["passes"] + 4 * ["fails"] + 7 * ["open"] and (given["passed"], given["of"]) == (1, 12), states
_, second, third, fourth, fifth = ([(f["test"], f["message"]) for f in lesson["failures"]] for lesson in given["lessons"][:5])
assert len(second) == 3 and second[2][0].startswith("J equals the finite differences"), second
assert third[0] == ("ds is the product with J", "this is a g: the average, which every score must subtract, is missing"), third
assert fourth[0][0] == "the compiler accepts the file" and '/* "\\ ' in fourth[0][1] and "\n" in fourth[0][1], fourth
assert fifth[-1][0] == "the program ends" and "signal 6" in fifth[-1][1], fifth
END
    status=$?
    cat "$work/said" >>"$work/output"
    check $status 'one document of JSON has the state of each lesson, its failing tests and their messages'
}

# In a separate build folder, since 20 seconds of an endless loop run in parallel with the lessons.
endless() {
    mkdir -p "$work/endless"
    printf '#include "lesson.h"\n#include <unistd.h>\n%s\n%s\n' \
        'void softmax_row(int64_t n, const double *x, double *y)' \
        '{ for (; n > 0; sleep(1)) y[0] = x[0]; }' >"$work/endless/01_one_row.c"
    SOFTBACK_BUILD=$work/build SOFTBACK_MY=$work/endless teach/lesson.sh 1 >"$work/endless/output" 2>&1
}

full=$#
if [ $full = 0 ]; then
    mkdir "$work/build"
    ln -s "$(cd "$build" && pwd)"/libsoftback.so* "$work/build"
    endless &
    waiting=$!
fi
for page in "$lessons"/[0-9]*.md; do
    name=$(basename "$page" .md)
    case " $* " in
    '  ' | *" ${name%%_*} "*) try_lesson "$name" ;;
    esac
done
if [ $full = 0 ]; then
    try_statement
    try_numbers
    try_script
    try_class
    wait "$waiting"
    cp "$work/endless/output" "$work/output"
    shows 'Stopped after 20 seconds'
    check $? 'an endless loop is stopped'
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
