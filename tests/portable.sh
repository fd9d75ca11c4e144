#!/bin/sh
# Builds the portable library with gcc and with clang, trains 300 steps with each, and compares the
# bits. tests/playground.sh does the same with WebAssembly.
set -eu
cd "$(dirname "$0")/.."
for compiler in gcc clang; do
    build=build/portable-$compiler
    [ -f $build/build.ninja ] || CC=$compiler meson setup $build -Dportable=true -Dwerror=true >/dev/null
    ninja -C $build >$build/build.log 2>&1 || { cat $build/build.log; exit 1; }
    $build/portable-train >$build/losses
done
cat build/portable-gcc/losses
cmp build/portable-gcc/losses build/portable-clang/losses
fingerprint=$(sed -n 's/^fingerprint //p' build/portable-gcc/losses)
grep -q "$fingerprint" docs/install.md || { echo "docs/install.md has a different fingerprint"; exit 1; }
echo "gcc $(gcc -dumpversion) and clang $(clang -dumpversion) agree to the bit"
