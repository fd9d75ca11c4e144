#!/bin/sh
# Makes one file of HTML of the lessons, with their pictures and a style for light and dark, readable
# without script: teach/book.sh [FILE], build/book.html otherwise. Needs pandoc. Links to files of
# the library lead to where these lie; with SOFTBACK_SITE=FOLDER, to the pages of that site which show them.
# teach/book.sh --handout [FILE], build/handout.html otherwise: for a class, with room where the book has answers,
# and without micro.c, what is measured of wrong gradients, and links to files.
set -eu
cd "$(dirname "$0")/.."
name=book pages='wrong_gradients ranks glossary' # behind the lessons
if [ "${1:-}" = --handout ]; then
    name=handout pages=glossary SOFTBACK_SITE=none # in which no file lies
    shift
fi
book=${1:-build/$name.html}
mkdir -p "$(dirname "$book")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A lesson, of which the hand-out has no answers
lesson_text() {
    [ $name = book ] && cat "$@" && return
    sed '/^<details>/,/^<\/details>/c<div class="room"></div>
        /^<!-- the answer -->/,/^<!-- its end -->/d
        s/ *(*`*\.\/run lesson [0-9]* --solution[^)]*)*//' "$@"
}

lessons=$(realpath --relative-to="$(dirname "$book")" teach/lessons)
[ -z "${SOFTBACK_SITE:-}" ] || lessons=source/teach/lessons
{
    sed 's|](\.\./|](../../|; s|](micro|](../micro|' teach/book.md
    printf '\n<nav>\n<h2 id="contents">Contents</h2>\n<ol>\n'
    for page in teach/lessons/[0-9]*.md; do
        sed -n '1s/^# \([0-9]*\)\. \(.*\)/<li><a href="#lesson-\1">\2<\/a><\/li>/p' "$page"
    done
    printf '</ol>\n<p>'
    [ $name = handout ] || printf '<a href="#%s">%s</a> ·\n' wrong-gradients-measured 'Wrong gradients, measured' \
        over-many-ranks 'Over many ranks' all-of-it-in-one-file micro.c
    printf '<a href="#glossary">Glossary</a> · <a href="#sources">Sources</a></p>\n</nav>\n<p><a class="up" href="#contents">Contents</a></p>\n'
    for page in teach/lessons/[0-9]*.md; do
        echo
        lesson_text "$page"
    done
    echo
    for page in $pages; do # as if they lay beside them
        echo
        sed 's|](\.\./|](../../|g; s|](lessons/|](|g; s|](playground/|](../playground/|g' teach/$page.md
    done
    [ $name = handout ] || printf '\n# All of it in one file\n\n```c\n%s\n```\n\n' "$(cat teach/micro.c)"
    cat docs/sources.md
} >"$work/book.md"
{
    echo '<style>'
    cat teach/book.css
    echo '</style>'
} >"$work/style.html"
pandoc --from gfm+smart+tex_math_dollars --to html5 --mathml --template teach/book.template --lua-filter teach/book.lua --no-highlight \
    --wrap=preserve --include-in-header "$work/style.html" \
    --metadata title="Backward through softmax" --metadata \
    lessons="$lessons" --metadata site="${SOFTBACK_SITE:-}" \
    --output "$work/book.html" "$work/book.md"
# Like TeX: brackets are as tall as their letters, those of a sum larger; signs and functions have small spaces.
sed 's/stretchy="true"/stretchy="false"/g
    s/false\(" form="prefix">(<\/mo><munder>[^()]*<mo stretchy="\)false/true\1true/g
    s|\(>[(=]</mo>\)<mo>−</mo>|\1<mo form="prefix">−</mo>|g
    s/form="[a-z]*">∥/lspace="0" rspace="0" &/g
    s|<mo>exp</mo>|<mi>exp</mi>|g
    s|<mtext[^>]*>\(d[a-zA-Z]\)</mtext>|<mi style="font-style: italic">\1</mi>|g
    s|<mo>ln</mo>|<mo lspace=".17em" rspace=".17em">ln</mo>|g' "$work/book.html" >"$book"
