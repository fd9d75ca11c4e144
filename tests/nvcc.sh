#!/bin/sh
# Compiles the plug-in for CUDA with warnings as errors, for compute capabilities 8.0 and 9.0, and checks
# its machine code (tests/sass.py). Without nvcc its last line begins with "skipped: " and it exits with 77.
set -eu
cd "$(dirname "$0")/.."
build=build/nvcc
{ command -v nvcc || command -v /usr/local/cuda/bin/nvcc; } >/dev/null || { echo "skipped: nvcc is missing"; exit 77; }
[ -f $build/build.ninja ] || meson setup $build -Dcuda=enabled -Dgpu_architectures=80,90 -Demulator=disabled \
    -Dtests=disabled -Dwerror=true >/dev/null
ninja -C $build libsoftback_cuda.so >$build/build.log 2>&1 || { cat $build/build.log; exit 1; }
python3 tests/sass.py --check $build
