#!/bin/sh
# Runs the suite under the address and the undefined-behaviour sanitizer, except for tests of the CUDA
# device alone, which tests/cuda.sh runs.
set -eu
cd "$(dirname "$0")/.."
build=build/sanitize
[ -f $build/build.ninja ] || meson setup $build -Dcuda=disabled -Demulator=enabled -Doptimization=2 -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1 \
    -Db_sanitize=address,undefined -Dinstruction_sets=baseline -Dopenmp=disabled \
    -Db_lundef=false >/dev/null
ninja -C $build softback-tests libsoftback_cuda_emulated.so >$build/build.log 2>&1 || { cat $build/build.log; exit 1; }
UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1 \
    tests/suite.sh $build '--filter=!(attention_bf16|attention_tf32x3|devices)/*'
