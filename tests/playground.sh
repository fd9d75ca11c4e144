#!/bin/sh
# The live page: its numbers equal the terminal's and those of a portable build for this processor, and
# all its controls work in a headless Chromium; pictures of them are in build/playground/pictures.
# Without node or Chromium, which ./run tools installs, it prints what it skips.
set -eu
cd "$(dirname "$0")/.."
build=${SOFTBACK_BUILD:-build}
native=build/portable-gcc
[ -x "$build/softback" ] || { echo "There is no $build/softback: run ./run build first" >&2; exit 2; }
[ -f $native/build.ninja ] || CC=gcc meson setup $native -Dportable=true >/dev/null
ninja -C $native >$native/build.log 2>&1 || { cat $native/build.log; exit 1; }
./run playground
if ! command -v node >/dev/null; then
    echo "node is missing: the page was built, but not tested"
    exit 0
fi

weights=$(SOFTBACK_BUILD=$native teach/lesson.sh 11 --solution | sed -n 's/.*to the bit: //p')
node tests/playground/module.mjs build/playground/teach/playground/playground.wasm \
    $native/teach/playground/playground-losses "$build/softback" "$weights"

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$chromium" ]; then
    echo "Chromium is missing: the page was not opened"
    exit 0
fi
mkdir -p build/playground/pictures
node tests/playground/page.mjs "$chromium" teach/playground.html build/playground/pictures \
    $native/teach/playground/playground-losses
