#!/bin/bash
# Tests the emulator: small kernels must give the right results in every mode, and the mode that the
# table below names must find each mistake that is planted in them. Ends with one line,
# "N passed, N failed".
#   tests/run.sh            everything
#   tests/run.sh --sample   a selection that takes less than a minute
#   tests/run.sh --matrix   which modes find which mistakes, as a table (slow)
#
# The modes:
#   plain   as in the suite: five seeds, then blocks and lanes in order and in reverse
#   clang   the same with clang++
#   switch  the same with swapcontext instead of the context switch in assembler
#   asan    address and undefined-behaviour sanitizers, everywhere
#   tsan    thread sanitizer, in the kernels only: the emulator must be built without it
#   guard   plain, and the host dies if it touches device memory
# A program that opens the emulated plug-in at run time need not be built with the thread sanitizer: the
# plug-in is linked without it, and the program runs with LD_PRELOAD=$(gcc -print-file-name=libtsan.so).
set -u
cd "$(dirname "$0")/.." || exit 2
build=${EMULATOR_BUILD:-build/tests}
include="-Iinclude -Iportable"
warnings="-Wall -Wextra -Wshadow -Werror"
asan="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=0

# program  mistake  mode that finds it  its message
mistakes() {
    cat <<TABLE
softmax    NO_BARRIER_BEFORE_WRITE   plain FAILED
softmax    NO_BARRIER_BEFORE_WRITE   tsan  data race
softmax    NO_BARRIER_AFTER_WRITE    plain FAILED
softmax    NO_BARRIER_AFTER_WRITE    tsan  data race
softmax    DIVERGENT_SHUFFLE         plain warp diverges
softmax    UNWRITTEN_SHARED          plain FAILED
softmax    EARLY_RETURN              plain deadlock
softmax    READ_PAST_END             asan  use-after-poison
attention  NO_BARRIER_BEFORE_TILE    plain FAILED
attention  NO_BARRIER_BEFORE_TILE    tsan  data race
attention  NO_BARRIER_AFTER_TILE     plain FAILED
attention  TILE_PAST_END             asan  use-after-poison
attention  SHARED_LIMIT              plain beyond the device's limits
layer_norm NO_BARRIER_IN_TREE        plain FAILED
layer_norm NO_BARRIER_IN_TREE        tsan  data race
layer_norm NO_ATOMIC                 tsan  data race
layer_norm NO_FENCE                  tsan  data race
layer_norm NO_MEMSET                 plain FAILED
dropout    WRITE_PAST_END            plain past the end of a buffer
dropout    WRITE_PAST_END            asan  use-after-poison
matmul     WRONG_WAIT                plain FAILED
matmul     NO_BARRIER_AFTER_MULTIPLY plain FAILED
matmul     NO_BARRIER_AFTER_MULTIPLY tsan  data race
copy       NO_COMMIT                 plain FAILED
copy       NO_WAIT                   plain FAILED
copy       NO_BARRIER                plain FAILED
copy       NO_BARRIER                tsan  data race
copy       MISALIGNED_COPY           plain not 16-byte aligned
copy       COPY_PAST_END             asan  use-after-poison
copy       NO_SYNCWARP               plain FAILED
copy       NO_SYNCWARP               tsan  data race
copy       BLOCK_ORDER               plain FAILED
copy       BLOCK_ORDER               tsan  data race
device     NO_WAIT                   plain FAILED
device     EARLY_REUSE               plain FAILED
device     HOST_TOUCHES              guard the host touched device memory
plugin     NO_BARRIER                tsan  data race
pointers   READ_RESTRICTED           plain FAILED
pointers   HOST_IN_STRUCT            plain is host memory
pointers   FREED_IN_STRUCT           plain not inside a device allocation
pointers   PAST_END_IN_STRUCT        plain past the end of a buffer
rounding   EXACT_LIMIT               plain FAILED
TABLE
}

programs="softmax attention layer_norm dropout matmul copy warp device blas misuse plugin pointers rounding"
sampled="softmax.*EARLY|softmax.*BEFORE_WRITE +plain|attention.*AFTER|SHARED_LIMIT|READ_PAST_END|NO_FENCE"
sampled="$sampled|WRONG_WAIT|SYNCWARP +plain|BLOCK_ORDER +plain|device.*WAIT|plugin|pointers|rounding"

flags_of() { # of the kernels
    case $1 in
    asan) echo "-O1 -g $asan" ;;
    tsan) echo "-O1 -g -fsanitize=thread" ;;
    *) echo "-O1 -g" ;;
    esac
}
compiler_of() { [ "$1" = clang ] && echo clang++ || echo "${CXX:-g++}"; }
library_of() { # the emulator of this mode
    case $1 in
    tsan | guard) echo "$build/plain.a" ;;
    blas) echo "$build/blas.a $(pkg-config --libs openblas)" ;;
    *) echo "$build/$1.a" ;;
    esac
}

# Builds the emulator of a mode, if it is older than its sources.
build_emulator() {
    local mode=$1 flags="-O2 -g" folder=$build/$1
    [ "$mode" = asan ] && flags="-O1 -g -fsanitize=address -fno-omit-frame-pointer"
    [ "$mode" = switch ] && flags="$flags -DSOFTBACK_EMULATOR_UCONTEXT"
    [ "$mode" = blas ] && flags="$flags -DSOFTBACK_EMULATOR_BLAS $(pkg-config --cflags openblas)"
    [ -z "$(find include source -newer "$build/$mode.a" 2>&1)" ] && return 0
    mkdir -p "$folder"
    for file in source/*.cpp; do
        echo "$(compiler_of "$mode") -std=c++17 $flags $warnings -fPIC -fvisibility=hidden $include" \
            "-c $file -o $folder/$(basename "$file" .cpp).o"
    done | xargs -P "${JOBS:-$(nproc)}" -I{} sh -c "{}" || return 1
    rm -f "$build/$mode.a"
    ar rcs "$build/$mode.a" "$folder"/*.o
}

# compile PROGRAM MISTAKE MODE: prints the command that runs it.
compile() {
    local name=$1 mode=$3 out=$build/$1.$2.$3 flags
    flags="-std=c++17 $(flags_of "$mode") -fno-strict-aliasing $warnings $include"
    [ "$2" = none ] || flags="$flags -DPLANTED_$2"
    local compiler kernel="-x c++ tests/$name.cu -x none"
    compiler=$(compiler_of "$mode")
    if [ "$name" != plugin ]; then
        $compiler $flags $kernel $(library_of "$mode") -o "$out" >&2 || return 1
        echo "$out"
        return
    fi
    local host_flags="" link_flags=""
    [ "$mode" = asan ] && host_flags=$asan link_flags=$asan
    $compiler $flags -fPIC -fvisibility=hidden -c $kernel -o "$out.o" >&2 || return 1
    $compiler -shared $link_flags "$out.o" $(library_of "$mode") -o "$out.so" >&2 || return 1
    ${CC:-gcc} -g -Wall -Wextra $host_flags tests/host.c -o "$out" -ldl -lpthread >&2 || return 1
    if [ "$mode" = tsan ]; then
        echo "env LD_PRELOAD=$(gcc -print-file-name=libtsan.so) $out $out.so 2016"
    else
        echo "$out $out.so 2016"
    fi
}

# The environments of a mode, one a line.
environments() {
    case $1 in
    guard) echo SOFTBACK_EMULATOR_GUARD=1000000 ;;
    asan | tsan) printf 'SOFTBACK_EMULATOR_SEED=%d\n' 1 2 ;;
    *) printf 'SOFTBACK_EMULATOR_SEED=%d\n' 1 2 3 4 5
       printf 'SOFTBACK_EMULATOR_ORDER=%s\n' forward reverse ;;
    esac
}

# check_right PROGRAM MODE: it exits with 0 in every environment.
check_right() {
    local command output
    command=$(compile "$1" none "$2") || { echo "FAILED $1 $2: does not compile"; return; }
    local more="SOFTBACK_EMULATOR_GUARD=1000000 SOFTBACK_EMULATOR_LAZY=0"
    [ "$1" = misuse ] && more="SOFTBACK_EMULATOR_MEMORY=1048576 SOFTBACK_EMULATOR_LAZY=0"
    [ "$1" = device ] && more=SOFTBACK_EMULATOR_GUARD=1000000 # it expects lazy streams
    for setting in $(environments "$2") $more; do
        output=$(env "$setting" timeout 120 $command 2>&1) && continue
        echo "FAILED $1 $2 with $setting:"
        echo "$output" | tail -20
        return
    done
    echo "passed $1 $2"
}

# finds PROGRAM MISTAKE MODE MESSAGE: it fails with this message in some environment.
finds() {
    local command output
    command=$(compile "$1" "$2" "$3") || return 2
    for setting in $(environments "$3"); do
        output=$(env "$setting" timeout 120 $command 2>&1) && continue
        [[ $output == *"$4"* ]] && return 0
    done
    return 1
}

check_found() {
    if finds "$@"; then echo "passed $1 $2 is found by $3"; else
        echo "FAILED $1 $2 is not found by $3 (\"$4\")"
    fi
}

# Without a device, every call fails; and a wrong setting is refused with a message.
check_no_device() {
    local command
    command=$(compile plugin none plain) || { echo "FAILED no device: does not compile"; return; }
    if env SOFTBACK_EMULATOR_DEVICES=0 ${command% 2016} -100 >/dev/null &&
        env SOFTBACK_EMULATOR_ORDER=odd $command 2>&1 | grep -q "not random, forward or reverse"; then
        echo "passed no device"
    else
        echo "FAILED no device"
    fi
}

matrix() {
    printf '%-11s %-26s %-6s %-6s %-6s\n' program mistake plain asan tsan
    mistakes | awk '$1 != "plugin" && $3 != "guard" { print $1, $2 }' | uniq |
        while read -r program mistake; do
            printf '%-11s %-26s' "$program" "$mistake"
            for mode in plain asan tsan; do
                finds "$program" "$mistake" $mode "" && printf ' %-6s' found || printf ' %-6s' -
            done
            echo
        done
}

jobs=${JOBS:-$(nproc)}
case ${1:-} in
--right) check_right "$2" "$3"; exit ;;
--found) check_found "$2" "$3" "$4" "${*:5}"; exit ;;
--no-device) check_no_device; exit ;;
esac
mkdir -p "$build"
modes="plain asan clang switch"
[ "${1:-}" = --sample ] && modes="plain asan"
command -v clang++ >/dev/null || modes=${modes/clang/}
pkg-config --exists openblas 2>/dev/null && [ "${1:-}" != --sample ] && modes="$modes blas"
for mode in $modes; do
    build_emulator "$mode" || { echo "the emulator does not compile ($mode)"; echo "0 passed, 1 failed"; exit 1; }
done
[ "${1:-}" = --matrix ] && { matrix; exit; }

# The arguments of this script for each check, one a line.
checks() {
    if [ "${1:-}" = --sample ]; then
        for name in softmax matmul device misuse plugin pointers rounding; do echo "--right $name plain"; done
        echo "--right copy asan"
        echo "--right layer_norm tsan"
        mistakes | grep -E "$sampled" | sed 's/^/--found /'
        return
    fi
    echo "--no-device"
    for mode in plain clang switch asan tsan; do
        [[ $mode == tsan || " $modes " == *" $mode "* ]] || continue
        for name in $programs; do
            [[ $name == misuse && $mode == *san ]] || echo "--right $name $mode"
        done
    done
    [[ " $modes " == *" blas "* ]] && echo "--right blas blas"
    mistakes | sed 's/^/--found /'
}

results=$(mktemp)
trap 'rm -f "$results"' EXIT
checks "${1:-}" | sed "s/'/\\\\'/g" | EMULATOR_BUILD=$build xargs -P "$jobs" -L 1 bash tests/run.sh | tee "$results" |
    grep -v '^passed'
passed=$(grep -c '^passed' "$results")
expected=$(checks "${1:-}" | wc -l)
echo "$passed passed, $((expected - passed)) failed"
[ "$passed" = "$expected" ]
