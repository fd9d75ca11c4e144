#!/bin/sh
# Builds everything with clang, with warnings as errors.
set -eu
cd "$(dirname "$0")/.."
build=build/clang
[ -f $build/build.ninja ] || CC=clang meson setup $build -Dcuda=disabled -Dinstruction_sets=baseline -Dwerror=true >/dev/null
ninja -C $build >$build/build.log 2>&1 || { cat $build/build.log; exit 1; }
echo "clang $(clang -dumpversion) builds without a warning"
