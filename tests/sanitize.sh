#!/bin/sh
# Runs the suite under the address and the undefined-behaviour sanitizer, on the CPU and on the emulated
# CUDA device, without tests that are too slow there (too_slow in tests/support/test.h), but with --long.
# Ends with one line, "N passed, N failed".
set -eu
cd "$(dirname "$0")/.."
build=build/sanitize
[ -f $build/build.ninja ] || meson setup $build -Dcuda=disabled -Demulator=enabled -Doptimization=2 -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1 \
    -Db_sanitize=address,undefined -Dinstruction_sets=baseline -Dcriterion=disabled -Dtests=enabled \
    -Db_lundef=false >/dev/null
ninja -C $build softback softback-tests libsoftback_cuda_emulated.so >$build/build.log 2>&1 || { cat $build/build.log; exit 1; }
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1:quarantine_size_mb=16
[ "${1:-}" != --long ] || export SOFTBACK_TEST_LONG=1
# on PLACE OPTION...: prints failures, and the counts last
on() {
    began=$(date +%s) place=$1
    shift
    tests/suite.sh $build --limit=300 "$@" >$build/results || failed=yes
    sed '$d' $build/results
    echo "sanitizers on $place: $(tail -n 1 $build/results), $(($(date +%s) - began)) s"
}
failed=
on "the CPU"
export SOFTBACK_TEST_DEVICE=cuda SOFTBACK_CUDA=emulated OMP_NUM_THREADS=1
on "the emulated device" --by-suite # opening it takes longer than many tests
[ -z "$failed" ]
