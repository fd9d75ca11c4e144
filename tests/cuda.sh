#!/bin/sh
# Runs the suite on the emulated CUDA device: every test of a device, unless it is marked as too slow
# (too_slow in tests/support/test.h). tests/sanitize.sh has the address sanitizer.
#   guarded  products and sums are contracted, as nvcc does it (not by vectors, which would leave some
#            alone), functions and tensor cores are as inexact as a device's, and the host dies if it
#            touches device memory before a test has run 200 kernels
#   races    under the thread sanitizer, which sees each thread of a kernel as one
# --long runs what is too slow as well, and adds
#   seed 1, seed 2, seed 3   exact arithmetic, with other schedules of threads
# --build only builds. Ends with one line, "N passed, N failed".
set -eu
cd "$(dirname "$0")/.."
device=build/device
tsan=build/cuda-tsan
fma=build/cuda-fma
export SOFTBACK_TEST_DEVICE=cuda SOFTBACK_CUDA=emulated OMP_NUM_THREADS=1

# build FOLDER TARGETS OPTIONS...: the suite with tests/plain, whose processes start faster than Criterion's
build() {
    folder=$1 targets=$2
    shift 2
    [ -f "$folder/build.ninja" ] || meson setup "$folder" -Dcuda=disabled -Demulator=enabled \
        -Dcriterion=disabled "$@" >/dev/null
    # shellcheck disable=SC2086 # several targets
    ninja -C "$folder" $targets >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }
}

passed=0 failed=0 begin=$(date +%s)
lap() { # prints how long the part took
    now=$(date +%s)
    echo "$1: $((now - begin)) s"
    begin=$now
}

# part NAME FOLDER ARGUMENTS...; a part in which no test passes has failed
part() {
    name=$1 folder=$2
    shift 2
    results=$(mktemp)
    tests/suite.sh "$folder" "$@" >"$results" || true
    sed '$d' "$results"
    counts=$(tail -n 1 "$results")
    rm -f "$results"
    passed=$((passed + ${counts%% passed*}))
    failed=$((failed + $(echo "$counts" | sed 's/.*, \([0-9]*\) failed.*/\1/')))
    [ "${counts%% *}" -gt 0 ] || failed=$((failed + 1))
    lap "$name: $counts"
}

build $device "softback softback-tests libsoftback_cuda_emulated.so" -Dtests=enabled
# Criterion's shared memory is at addresses that the thread sanitizer does not allow.
build $tsan "softback softback-tests libsoftback_cuda_emulated.so" -Doptimization=2 -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1 \
    -Db_sanitize=thread -Dinstruction_sets=baseline -Dblas=none -Dtests=enabled -Db_lundef=false
contracted=
if grep -q '\bfma\b' /proc/cpuinfo 2>/dev/null; then
    build $fma libsoftback_cuda_emulated.so -Dtests=disabled "-Dcpp_args=-mfma -ffp-contract=fast -fno-tree-vectorize"
    contracted=$PWD/$fma/libsoftback_cuda_emulated.so
fi
lap "builds"
[ "${1:-}" != --build ] || exit 0

long=
[ "${1:-}" != --long ] || long=1
export SOFTBACK_TEST_LONG=$long SOFTBACK_EMULATOR_SEED=1
export SOFTBACK_EMULATOR_ROUNDING=1 SOFTBACK_CUDA="${contracted:-emulated}" SOFTBACK_EMULATOR_GUARD=200
part "guarded" $device
export SOFTBACK_EMULATOR_ROUNDING=0 SOFTBACK_CUDA=emulated SOFTBACK_EMULATOR_GUARD=0
for seed in ${long:+1 2 3}; do
    export SOFTBACK_EMULATOR_SEED="$seed"
    part "seed $seed" $device
done

# It ends the process, and so the test, at the first race. The tests of a suite share a process, since a
# process takes longer to begin than most tests.
export TSAN_OPTIONS=halt_on_error=1
part "races" $tsan --limit=300 --by-suite
export SOFTBACK_TEST_DEVICE=
part "races of shares on the CPU" $tsan --limit=300 '--filter=shares/*'

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
