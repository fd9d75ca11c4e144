#!/bin/sh
# Removes one __syncthreads at a time from the kernels of softmax, layer norm, cross entropy, attention
# and products on tensor cores; the emulator must find each: under one of several schedules, or else as
# a race under the thread sanitizer. --sample tries one of each kind. Ends with "N passed, N failed".
set -eu
cd "$(dirname "$0")/.."
sample=
[ "${1:-}" != --sample ] || sample=1
tests/cuda.sh --build
root=$PWD

# The command that makes a target, in the build folder.
command_of() {
    ninja -C $build -t commands "$1" | tail -n 1
}

# make_plugin KERNELS: builds the plug-in with the file under $plant in place of the original, for
# the kernels that include it.
make_plugin() {
    link=$(command_of libsoftback_cuda_emulated.so)
    for kernel in $1; do
        object=libsoftback_cuda_emulated.so.p/meson-generated_.._cuda_emulated_$kernel.cpp.o
        compile=$(command_of $object | sed "s| -I| -I$plant -I|; s| -o $object| -o $plant/$kernel.o|")
        (cd $build && sh -c "$compile") || return 1
        link=$(echo "$link" | sed "s| $object | $plant/$kernel.o |")
    done
    (cd $build && sh -c "$(echo "$link" | sed "s|-o libsoftback_cuda_emulated.so|-o $plugin|")")
}

# use FOLDER: mistakes are planted in this build.
use() {
    build=$1
    plant=$root/$build/plant
    plugin=$plant/libsoftback_cuda_emulated.so
    mkdir -p $plant
}

run_tests() {
    SOFTBACK_TEST_DEVICE=cuda SOFTBACK_CUDA=$plugin OMP_NUM_THREADS=1 timeout 120 $build/softback-tests \
        --jobs=1 --filter="$filter" >$plant/log 2>&1
}

# Whether the tests fail under some schedule.
fails_when_scheduled() {
    for seed in 1 2 3 4 5; do
        SOFTBACK_EMULATOR_SEED=$seed run_tests || return 0
    done
    SOFTBACK_EMULATOR_ORDER=reverse run_tests || return 0
    return 1
}

races() {
    TSAN_OPTIONS=halt_on_error=1 run_tests || grep -q "data race" $plant/log
}

passed=0 failed=0
# plant FILE N KERNELS: without the Nth barrier of the file; 0 leaves it as it is.
plant() {
    rm -rf "$plant"
    mkdir -p "$plant/cuda"
    awk -v n="$2" '/__syncthreads\(\);/ && ++count == n { sub(/__syncthreads\(\);/, ";") } { print }' \
        cuda/$1 >"$plant/cuda/$1"
    make_plugin "$3"
}

try() { # try FILE N KERNELS
    how=missed
    use build/device
    if ! plant $1 $2 "$3"; then
        how="does not compile"
    elif fails_when_scheduled; then
        how=scheduled
    else
        use build/cuda-tsan
        plant $1 $2 "$3" && races && how=race
    fi
    printf '%-32s barrier %d of %-28s %s\n' "$1" "$2" "$3" "$how"
    case $how in
    scheduled | race) passed=$((passed + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
}

try_all() { # try_all FILE KERNELS
    barriers=$(grep -c '__syncthreads();' cuda/$1)
    [ -z "$sample" ] || barriers=1
    n=1
    while [ $n -le "$barriers" ]; do
        try $1 $n "$2"
        n=$((n + 1))
    done
}

filter='devices/cuda_agrees*'
use build/device
plant row_group.cuh 0 softmax && ! fails_when_scheduled || { echo "fails with all barriers"; echo "0 passed, 1 failed"; exit 1; }
try_all row_group.cuh softmax
try_all row_group.cuh cross_entropy
try_all slabs.cuh layer_norm
try_all attention_tiles.cuh attention
if [ -z "$sample" ]; then
    try_all row_group.cuh layer_norm
    try_all attention.cu attention
    filter='matmul_bf16/*'
    try_all gemm_mma.cu gemm_mma
    filter='matmul/*'
    try_all gemm_float.cu gemm_float
    filter='attention_bf16/*'
    mma="attention_mma attention_mma_bias attention_mma_keys attention_mma_queries"
    try_all attention_mma_nonfinite.cuh "$mma"
    for kernel in $mma; do
        try_all $kernel.cu $kernel
    done
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
