#!/bin/sh
# The book of lessons is one file that needs no other, is valid HTML, has every lesson, and no broken
# link. Without pandoc nothing is tested, and without tidy the HTML is not. Ends with one line,
# "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 2
command -v pandoc >/dev/null || {
    echo "book: pandoc is missing (Debian's package of that name), so the book is not tested"
    echo "0 passed, 0 failed"
    exit
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/check.sh

: >"$work/output"
book=$work/folder/book.html
teach/book.sh "$book" >"$work/output" 2>&1 && [ ! -s "$work/output" ]
check $? "the book is made, and nothing is printed"
[ -f "$book" ] || exit 1
if command -v tidy >/dev/null; then
    tidy -quiet -errors "$book" >"$work/output" 2>&1
    check $? "tidy finds neither errors nor warnings"
else
    echo "book: tidy is missing (Debian's package of that name), so the HTML is not tested"
fi

# One line for each link; each id; links without a target are printed: links FILE
links() {
    grep -o 'href="[^"]*"' "$1" | sed 's/href="\(.*\)"/\1/' | sort -u >"$work/links"
    grep -o ' id="[^"]*"' "$1" | sed 's/ id="\(.*\)"/\1/' | sort >"$work/ids"
    while read -r link; do
        case $link in
        '#'*) grep -qxF "${link#?}" "$work/ids" ;;
        http*) ;;
        *) [ -e "$work/folder/$link" ] ;;
        esac || echo "$link"
    done <"$work/links"
}

links "$book" >"$work/output"
[ ! -s "$work/output" ]
check $? "every link has a target"
lessons=0
for page in teach/lessons/[0-9]*.md; do
    lessons=$((lessons + 1))
    sed -n '1s/^# //p' "$page" >"$work/title"
    grep -q "<h1 id=\"lesson-$lessons\">$(cat "$work/title")</h1>" "$book" &&
        grep -qx "#lesson-$lessons" "$work/links"
    check $? "$page is in the book and in its contents"
done
grep -q "<h1 id=\"over-many-ranks\">$(sed -n '1s/^# //p' teach/ranks.md)</h1>" "$book" &&
    grep -qx '#over-many-ranks' "$work/links"
check $? "teach/ranks.md is in the book and in its contents"
[ $lessons -ge 12 ]
check $? "there are at least 12 lessons"
python3 tests/formulas.py "$book" teach/*.md teach/lessons/*.md >"$work/output" 2>&1 && [ ! -s "$work/output" ]
check $? "each formula of the lessons is MathML, with as many children as an element needs"
sed -n '/<h1 id="glossary">/,$p' "$book" | grep -c '^<tr' >"$work/output"
[ "$(cat "$work/output")" -ge 61 ]
check $? "the glossary has at least 60 terms"
grep -o 'lesson [0-9]*' teach/glossary.md | sort -u | while read -r _ n; do
    [ -e teach/lessons/"$(printf '%02d' "$n")"_*.md ] || echo "lesson $n"
done >"$work/output"
[ ! -s "$work/output" ]
check $? "the glossary's lessons exist"
uniq -d "$work/ids" >"$work/output"
[ ! -s "$work/output" ]
check $? "every id is unique"
grep -oE '<script|<link|@import|src="[^d][^"]*"' "$book" >"$work/output"
[ ! -s "$work/output" ]
check $? "it needs no script and no other file"
grep -o 'src="data:image/svg+xml,[^"]*" alt="[^"]\{20,\}"' "$book" | wc -l >"$work/output"
[ "$(cat "$work/output")" -ge 4 ]
check $? "its pictures are in it, with texts for those who cannot see them"
grep -q 'prefers-color-scheme: dark' "$book"
check $? "it has a dark style"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -n "$browser" ] && command -v node >/dev/null; then
    node tests/book.mjs "$browser" "$book" >"$work/output" 2>&1
    check $? "on a phone and on a desk, nothing is cut off or beyond the edge"
else
    echo "book: Chromium or node is missing, so its layout is not tested"
fi

handout=$work/handout.html
teach/book.sh --handout "$handout" >"$work/output" 2>&1 && [ ! -s "$work/output" ]
check $? "the hand-out is made, and nothing is printed"
[ "$(grep -c '<h1 id="lesson-' "$handout")" = $lessons ] &&
    [ "$(grep -c 'class="room"' "$handout")" = "$(cat teach/lessons/*.md | grep -c '<details>')" ]
check $? "it has each lesson, and room for each answer"
! grep -noE '<details|--solution|void matmul|ignores' "$handout" >"$work/output"
check $? "it has no answer, no solution and nothing that is measured of wrong gradients"
{ links "$handout"; grep -vE '^#|^https' "$work/links"; } >"$work/output"
[ ! -s "$work/output" ]
check $? "its links lead to its own parts, or to papers"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
