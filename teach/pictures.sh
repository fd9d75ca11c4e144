#!/bin/sh
# Draws the pictures of README.md and the book anew, teach/pictures/*.svg, with commands of the
# program: trains the dates model as ./run does, unless one is given, whose log lies beside it. Where
# there are node, Chromium and the page of ./run playground, it also takes the picture of that. Drawn
# by hand: online, product, ranks, tape.
#
# teach/pictures.sh [MODEL]        SOFTBACK is the program ("./softback" otherwise, by ./run build)
set -eu
cd "$(dirname "$0")/.."
softback=${SOFTBACK:-./softback}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=${1:-$work/dates.safetensors}
[ $# -gt 0 ] || "$softback" train --task dates --out "$model"

figure() { # figure NAME: of the report
    "$softback" report "$model" --input "12 November 1987" --figure "$1" >"$work/$1.svg"
}

figure attention
figure loss
"$softback" explain softmax --svg >"$work/jacobian.svg"
for picture in attention loss jacobian; do
    [ "$(wc -c <"$work/$picture.svg")" -lt 60000 ] || { echo "$picture.svg is too large" >&2; exit 1; }
    mv "$work/$picture.svg" teach/pictures/
done
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -n "$chromium" ] && [ -f teach/playground.html ] && command -v node >/dev/null; then
    node teach/playground/picture.mjs "$chromium" teach/playground.html teach/pictures/playground.png
fi
ls -l teach/pictures
