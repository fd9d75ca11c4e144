#!/bin/sh
# Runs the suite on the emulated CUDA device:
#   seed 1   tests that run kernels
#   fma      agreement with the CPU where products and sums are contracted, as nvcc does it, and
#            functions and tensor cores are as inexact as a device's
#   guard    tests of small tensors in which the host dies if it touches device memory, all of which
#            is opened for each launch: tests of many kernels would take minutes
#   asan     small shapes under the address and the undefined-behaviour sanitizer
#   tsan     a few of these under the thread sanitizer, which sees each thread of a kernel as one
# --long runs the tests of asan under tsan too, and adds
#   seed 2, seed 3   tests that run kernels, with other schedules of threads
#   all      every test except those of mpi, which open the device themselves
# --build only builds. Ends with one line, "N passed, N failed".
set -eu
cd "$(dirname "$0")/.."
plain=build # of ./run test
asan=build/sanitize # of tests/sanitize.sh
tsan=build/cuda-tsan
fma=build/cuda-fma
export SOFTBACK_TEST_DEVICE=cuda SOFTBACK_CUDA=emulated OMP_NUM_THREADS=1

# build FOLDER TARGETS OPTIONS...
build() {
    folder=$1 targets=$2
    shift 2
    [ -f "$folder/build.ninja" ] || meson setup "$folder" -Dcuda=disabled -Demulator=enabled "$@" >/dev/null
    # shellcheck disable=SC2086 # several targets
    ninja -C "$folder" $targets >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }
}

# A pattern for the tests of these suites.
suites() {
    echo "--filter=@($(echo "$@" | tr ' ' '|'))/*"
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
    failed=$((failed + $(echo "$counts" | sed 's/.*, \([0-9]*\) failed/\1/')))
    [ "${counts%% *}" -gt 0 ] || failed=$((failed + 1))
    lap "$name: $counts"
}

kernels=$(suites arithmetic attention attention_bf16 attention_call attention_mask attention_ring attention_tf32x3 beam bf16 \
    broadcast cast concatenate cross_entropy decoding_note devices dropout elementwise embedding expand gather kv_cache \
    l2_normalize layer_norm linear linear_cross_entropy linear_group lost_device log_softmax logsumexp 'mask*' matmul \
    matmul_bf16 mean_squared_error operations optimiser permute positions \
    recomputation reduce 'reference*' replay reshape rms_norm rounded_parameters seq2seq slice softmax topk work)
small="arithmetic attention_call bf16 broadcast cast concatenate cross_entropy devices dropout elementwise \
    embedding expand gather l2_normalize layer_norm linear linear_cross_entropy linear_group log_softmax logsumexp \
    mask matmul mean_squared_error optimiser permute positions reduce reference_losses reference_optimisers \
    reshape rms_norm rounded_parameters slice softmax"
guarded="arithmetic attention_call broadcast cast concatenate cross_entropy elementwise gather \
    l2_normalize mean_squared_error optimiser permute reshape slice softmax"
inexact="attention_bf16 attention_tf32x3 bf16 devices linear linear_group matmul_bf16"
races="attention_call cross_entropy dropout embedding layer_norm linear matmul optimiser reduce softmax"

build $plain "softback softback-tests libsoftback_cuda_emulated.so"
build $asan "softback softback-tests libsoftback_cuda_emulated.so" -Doptimization=2 -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1 \
    -Db_sanitize=address,undefined -Dinstruction_sets=baseline -Dopenmp=disabled -Db_lundef=false
# Criterion's shared memory is at addresses that the thread sanitizer does not allow.
build $tsan "softback-tests libsoftback_cuda_emulated.so" -Doptimization=2 -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1 \
    -Db_sanitize=thread -Dinstruction_sets=baseline -Dopenmp=disabled -Dblas=none \
    -Dcriterion=disabled -Dtests=enabled -Db_lundef=false
contracted=
if grep -q '\bfma\b' /proc/cpuinfo 2>/dev/null; then
    build $fma libsoftback_cuda_emulated.so -Dtests=disabled -Demulator_flags=-mfma,-ffp-contract=fast
    contracted=$PWD/$fma/libsoftback_cuda_emulated.so
fi
lap "builds"
[ "${1:-}" != --build ] || exit 0

[ "${1:-}" != --long ] || inexact="$small attention_bf16 attention_tf32x3"
export SOFTBACK_EMULATOR_SEED=1
part "seed 1" $plain "$kernels"
export SOFTBACK_EMULATOR_ROUNDING=1 SOFTBACK_CUDA="${contracted:-emulated}"
part "fma" $plain "$(suites $inexact)"
export SOFTBACK_EMULATOR_ROUNDING=0 SOFTBACK_CUDA=emulated SOFTBACK_EMULATOR_GUARD=1
part "guard" $plain "--filter=@(@($(echo $guarded | tr ' ' '|'))/*|linear/!(every*))"
export SOFTBACK_EMULATOR_GUARD=0
if [ "${1:-}" = --long ]; then
    races=$small
    part "all" $plain '--filter=!(mpi)/*'
    SOFTBACK_EMULATOR_SEED=2
    part "seed 2" $plain "$kernels"
    SOFTBACK_EMULATOR_SEED=3
    part "seed 3" $plain "$kernels"
fi

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1
part "asan" $asan "$(suites $small attention_bf16 attention_tf32x3 replay)"

# It ends the process, and so the test, at the first race.
export TSAN_OPTIONS=halt_on_error=1
part "tsan" $tsan "$(suites $races)"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
