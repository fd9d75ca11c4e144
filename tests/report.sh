#!/bin/sh
# The pages of `softback report` and of `softback train --report`: tidy finds valid HTML, the slider
# over decoding steps and the zoom of curves work in Chromium, and single figures are XML. Without
# tidy, Chromium or node, tests that need it are skipped. Ends with "N passed, N failed".
#
# tests/report.sh [BUILD]: a folder with a built program, "build" otherwise.
set -u
cd "$(dirname "$0")/.." || exit 2
softback=$(cd "${1:-build}" && pwd)/softback || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/check.sh

# tidy 5.6 accepts SVG within HTML.
valid() { # valid [-xml] FILE
    tidy -quiet -errors "$@" >"$work/output" 2>&1 && [ ! -s "$work/output" ]
}

try_pages() {
    for page in trained reported chosen odd compared runs/report language long; do
        valid "$work/$page.html"
        check $? "tidy finds neither errors nor warnings in the page $page"
    done
    for figure in attention alignment loss jacobian; do
        valid -xml "$work/$figure.svg"
        check $? "the figure $figure is XML"
    done
}

# The page after its script has run, at a step.
at_step() { # at_step N
    "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/browser" --dump-dom \
        "file://$work/reported.html#step=$1" >"$work/output" 2>/dev/null
}

# Without a hash the first part is shown, the others are hidden behind their tabs.
try_tabs() {
    "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/browser" --dump-dom \
        "file://$work/reported.html" >"$work/output" 2>/dev/null
    [ "$(grep -c '<section class="part" data-name="[^"]*" aria-label="[^"]*" hidden="">' "$work/output")" = 5 ] &&
        grep -q '<section class="part" data-name="Curves" aria-label="Curves">' "$work/output" &&
        grep -q '<button aria-pressed="true">Curves</button>' "$work/output"
    check $? "the script turns the parts into tabs"
    "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/browser" --dump-dom \
        "file://$work/reported.html#part=Check%20and%20tape" >"$work/output" 2>/dev/null
    grep -q '<button aria-pressed="true">Check and tape</button>' "$work/output"
    check $? "the address names a part"
}

try_slider() {
    at_step 2
    grep -q '<section id="steps">' "$work/output"
    check $? "the script shows the slider"
    at_step 2
    grep -q 'aria-valuetext="2 of 3: it writes 2"' "$work/output" &&
        grep -q '<span class="">1</span><span class="now">2</span><span class="later">' "$work/output"
    check $? "the second step is the second symbol"
    at_step 3
    weights=$(sed -n 's/^<tr data-weights="\([^"]*\)".*/\1/p' "$work/output" | head -n 1 | cut -d ' ' -f 7-)
    cells=$(sed -n '/^<tr data-weights=/{s/.*<\/th>//;s/<td[^>]*><\/td>/0 /g;s/<td[^>]*>//g;s/<\/td>/ /g;s/ <\/tr>//;p;q}' "$work/output")
    [ -n "$weights" ] && [ "$weights" = "$cells" ]
    check $? "the cells of the third step are its weights: $weights; $cells"
}

# A run of 2,000 steps, as a log: the loss falls and is noisy.
write_long_log() {
    echo '{"softback":"log","format":2}'
    awk 'BEGIN { srand(1)
        for (step = 10; step <= 2000; step += 10) {
            loss = 3 * exp(-step / 600)
            printf "{\"step\":%d,\"loss\":%.4f,\"rate\":0.001,\"norm\":%.4f,\"symbols\":100}\n",
                step, loss * (0.8 + 0.4 * rand()), 0.4 + 3.5 * rand()
            if (step % 200 == 0)
                printf "{\"step\":%d,\"held_out_loss\":%.4f,\"held_out_error\":0.5,\"best\":true}\n",
                    step, loss
        } }'
}

# What a page says without a script.
try_texts() {
    grep -q '<span>task</span> <strong>copy</strong>' "$work/chosen.html" &&
        grep -q 'A nat is the unit of natural logarithms' "$work/chosen.html"
    check $? "a page without --input has a held-out text, its task, and its unit"
    grep -q 'nats, log scale</text>' "$work/long.html"
    check $? "the loss has a label of its axis"
    grep -q 'log holds none' "$work/long.html"
    check $? "a page without gradients says which option logs them"
    "$softback" report "$work/l" >"$work/output" 2>&1
    [ $? != 0 ] && grep -q 'give --input TEXT' "$work/output"
    check $? "a language model asks for --input"
}

# teach/playground/assemble.sh, html.c and drawing_svg.c take all colours from one table.
try_palette() {
    grep -nE '[^&]#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})\b' teach/report/*.[cj]* teach/playground/*.[chj]* models/drawing_svg.c >"$work/output"
    [ ! -s "$work/output" ]
    check $? "colours are rows of models/palette.h"
}

try_zoom() {
    node tests/report.mjs "$browser" "$work/long.html" "$work/chosen.html" >"$work/output" 2>&1
    check $? "curves can be zoomed and smoothed"
}

train="$softback train --task copy --min-length 3 --max-length 5 --width 16 --heads 2
    --encoder-layers 1 --decoder-layers 1 --steps 40 --evaluate-every 10 --evaluate-pairs 8 --threads 1"
# shellcheck disable=SC2086 # words
{
    $train --out "$work/m" --report "$work/trained.html" &&
        "$softback" report "$work/m" --input '3 1 4' --target '1 2' --out "$work/reported.html" &&
        "$softback" report "$work/m" --out "$work/chosen.html" &&
        "$softback" report "$work/m" --input '<b>&1" x' --out "$work/odd.html" &&
        $train --seed 2 --out "$work/n" && "$softback" report "$work/m" "$work/n" --out "$work/compared.html" &&
        mkdir "$work/runs" && cp "$work/m" "$work/m.jsonl" "$work/n" "$work/n.jsonl" "$work/runs" &&
        cp "$work/n" "$work/runs/<n> & \"more\"" && cp "$work/n.jsonl" "$work/runs/<n> & \"more\".jsonl" &&
        "$softback" report "$work/runs" &&
        "$softback" train --model language_model --task dates --width 16 --heads 2 --decoder-layers 1 --steps 40 \
            --evaluate-every 10 --threads 1 --out "$work/l" --report "$work/language.html" &&
        write_long_log >"$work/long.jsonl" &&
        "$softback" report "$work/m" --input '3 1 4' --log "$work/long.jsonl" --out "$work/long.html" &&
        for figure in attention alignment loss; do
            "$softback" report "$work/m" --input '3 1 4' --figure $figure >"$work/$figure.svg" || break
        done && "$softback" explain softmax --svg >"$work/jacobian.svg"
} >"$work/output" 2>&1
check $? "pages and figures are made"
try_texts
try_palette
if command -v tidy >/dev/null; then
    try_pages
else
    echo "report: tidy is missing (Debian's package of that name), so the HTML is not tested"
fi
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -n "$browser" ]; then
    try_tabs
    try_slider
    if command -v node >/dev/null; then
        try_zoom
    else
        echo "report: node is missing, so the zoom is not tested"
    fi
else
    echo "report: Chromium is missing, so the slider is not tested"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
