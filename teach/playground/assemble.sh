#!/bin/sh
# Puts the page together: assemble.sh PLAYGROUND.WASM > playground.html
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT

# The lines of a function of C with the comment above it, for HTML: lines FILE NAME
lines() {
    awk -v name="$2" '
        /^\/\*/ { text = ""; comment = 1 }
        comment || inside { text = text $0 "\n" }
        /\*\/$/ { comment = 0; kept = 1; next }
        !comment && !inside && $0 ~ "^static.*[ *]" name "\\(" { inside = 1; found = 1; text = kept ? text $0 "\n" : $0 "\n" }
        !comment && !inside { text = ""; kept = 0 }
        inside && /^}/ { printf "%s", text; exit }
        END { exit !found }' "$root/$1" |
        sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'
}

lines ops/cpu/softmax.c softmax_masked_backward_row >"$parts/row_kernel.txt"
lines ops/cpu/attention_backward.c attention_score_gradient >"$parts/attention_kernel.txt"
gzip -9nc "$1" | base64 -w 100 >"$parts/module.txt"
# The table of wrong_gradients.md, with its formulas as text
printed() {
    sed 's/\\\(text\|mathrm\){\([a-z]*\)}/\2/g; s/\\partial /∂/g; s/_{*\([a-z]*\)}*/<sub>\1<\/sub>/g; s/\$//g; s/ - / − /g'
}
awk -F ' *[|] *' '
    /^[|]-/ || !/^[|]/ { next }
    { name = heads++ ? "td" : "th"; row = "<tr>"
      for (i = 2; i < NF; i++) row = row "<" name ">" $i "</" name ">"
      print row "</tr>" }' "$here/../wrong_gradients.md" | sed '1i<table>
$a</table>' | printed >"$parts/measured.txt"
# The rows of the palette, name, light and dark
awk -F '"' '
    /^    colour/ { light = light "--" $2 ":" $4 ";"; dark = dark "--" $2 ":" $6 ";" }
    END { print ":root{" light "}\n@media(prefers-color-scheme:dark){:root{" dark "}}" }' "$root/models/palette.h" >"$parts/palette.css"
cp "$here"/page.css "$here"/*.js "$here"/../axes.js "$parts"
awk -v parts="$parts" '
    /@include / {
        file = parts "/" $NF
        sub(/@include .*/, "")
        printf "%s", $0
        while ((getline line < file) > 0) print line
        close(file)
        next
    }
    { print }' "$here/page.html"
