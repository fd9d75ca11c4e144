#!/bin/sh
# The site: it is made without a warning, no link is broken and nothing is loaded from elsewhere, its HTML is valid,
# its search finds what people ask first, and no page of the main ones is wider than a phone. Where PyPI's packages
# cannot be had its last line begins with "skipped: " and it exits with 77; without tidy, node or Chromium the
# tests that need it are skipped. Ends with one line, "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/check.sh
site=$work/site

echo '<!DOCTYPE html><html lang="en"><head><title>stand-in</title></head><body><p>made by ./run site</p><p><a data-lesson="09_online">lesson 9</a></p><script>parent.postMessage({height: 321}, "*")</script></body></html>' >"$work/page.html"
docs/site.sh "$site" "$work/page.html" "$work/page.html" https://example.org/softback >"$work/output" 2>&1
code=$?
[ $code != 77 ] || { cat "$work/output"; exit 77; }
check $code "the site is made, without a warning"
[ -f "$site/index.html" ] || exit 1

python3 tests/site.py "$site" >"$work/output" 2>&1
check $? "each link has its target, and nothing is loaded from elsewhere"
for page in index teach/lessons/01_one_row; do
    grep -qF "<link rel=\"canonical\" href=\"https://example.org/softback/$page.html\"" "$site/$page.html" || echo "$page"
done >"$work/output"
[ ! -s "$work/output" ]
check $? "pages name the address of the site"
for lesson in teach/lessons/[0-9]*.md; do
    grep -qF "href=\"${lesson%.md}.html\"" "$site/learn.html" || echo "$lesson"
done >"$work/output"
[ ! -s "$work/output" ]
check $? "each lesson is a page"
sed -n 's/^SB_API .*\b\(sb_[a-z0-9_]*\)(.*/\1/p' ops/ops.h | while read -r name; do
    grep -q "id=\"c.$name\"" "$site/reference/ops_ops.html" || echo "$name"
done >"$work/output"
[ ! -s "$work/output" ]
check $? "each operation is in the reference"
for page in live book report; do
    grep -qE "href=\"$page.html\">[A-Z]" "$site/how_to.html" || echo "$page"
done >"$work/output"
[ ! -s "$work/output" ]
check $? "the sidebar leads to the live page, the book and a report"
for page in live book report; do
    [ ! -f "$site/$page.html" ] || grep -q '<a href="index.html"' "$site/$page.html" || echo "$page"
done >"$work/output"
[ ! -s "$work/output" ]
check $? "these lead back to the site"
if [ -f "$site/book.html" ]; then
    grep -oE 'href="source/[^"]*"' "$site/book.html" | sort -u >"$work/output"
    [ "$(wc -l <"$work/output")" -ge 20 ]
    check $? "names of files in the book lead to pages that show them"
fi
for lesson in 04_the_wrong_gradient 07_saturated_rows 11_learn_to_reverse; do
    grep -q 'href="../../live.html"><span[^>]*>live page' "$site/teach/lessons/$lesson.html" || echo "$lesson"
done >"$work/output"
[ ! -s "$work/output" ]
check $? "lessons lead to the live page"
grep -q '<a href="teach/lessons/09_online.html">' "$site/live.html"
check $? "the live page leads to lessons"
first=$(grep -o '<dt class="sig[^>]* id="[a-z_]*"' "$site/reference/python_ops.html" | head -1)
echo "$first" >"$work/output"
[ "${first##* }" = 'id="softmax"' ] # not id0, as behind a heading of that name
check $? "Python's operations begin with softmax"
sed -n '/id="softmax"/,/id="log_softmax"/p' "$site/reference/python_ops.html" >"$work/output"
grep -q 'Shape' "$work/output" && grep -q 'Backward' "$work/output" && grep -q 'sb_softmax' "$work/output"
check $? "Python's softmax has its shape, its backward and its name in C"
grep -nE 'NULL|int64_t|SB_[A-Z]|= ?\.\.\.' "$site"/reference/python_*.html >"$work/output"
[ ! -s "$work/output" ]
check $? "the Python reference has Python's spellings and each default"
sed -n '/id="attention"/,/id="attention_weights"/p' "$site/reference/python_ops.html" | sed 's/<[^>]*>//g' >"$work/text"
for said in 'temperature=1' "layout='length_first'" 'Tensor | tuple[Tensor, Tensor]' 'with weights=True the pair (y, weights)'; do
    grep -qF "$said" "$work/text" || echo "$said"
done >"$work/output"
[ ! -s "$work/output" ]
check $? "Python's attention has its defaults and says what it returns"
! grep -oE "[ (>][a-zA-Z][’‘]([^s]|$)" "$site/reference/ops_ops.html" >"$work/output"
check $? "a transpose has a prime, not a quotation mark"

main='index how_to gallery learn teach/lessons/03_never_build_j teach/glossary reference/ops_ops reference/python
    reference/python_ops tutorial measured'
if command -v tidy >/dev/null; then
    for page in $main; do # tidy 5.6 knows neither MathML in a table nor all attributes of Furo's icons
        tidy -quiet -errors "$site/$page.html" 2>&1 | grep -v ' - Warning: ' >"$work/output"
        [ ! -s "$work/output" ]
        check $? "tidy finds no error in $page.html"
    done
else
    echo "site: tidy is missing (Debian's package of that name), so the HTML is not tested"
fi
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -n "$browser" ] && command -v node >/dev/null; then
    # shellcheck disable=SC2086 # names of pages
    node tests/site.mjs "$browser" "$site" $main >"$work/output" 2>&1
    check $? "pages fit a phone, write no error, and the search finds answers"
else
    echo "site: node or Chromium is missing, so its pages are not opened"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
