#!/bin/sh
# Tests that take hours, to be run before a release: ./run test --long. What has passed on this commit is
# not run again when it is started anew: build/long/COMMIT has a file for each. The last line is the
# suite's "N passed, N failed".
set -eu
cd "$(dirname "$0")/.."
. tests/steps.sh
commit=$(git rev-parse HEAD 2>/dev/null || echo none)
[ -z "$(git status --porcelain 2>/dev/null)" ] || commit=$commit-changed
mkdir -p "build/long/$commit"
echo "The long tests take hours. They go on where they ended when they are started again."

# once NAME COMMAND...: unless it has passed
once() {
    passed=build/long/$commit/$(echo "$1" | tr -c 'a-zA-Z0-9\n' '_')
    [ ! -e "$passed" ] || { echo "passed before: $1"; return; }
    step "$1"
    shift
    where_possible "$@"
    [ "$code" != 0 ] || touch "$passed"
}

suite() {
    SOFTBACK_TEST_LONG=1 tests/suite.sh build >build/long/suite 2>&1 || {
        cat build/long/suite
        return 1
    }
}
once "the suite, with matrices of seeds, long inputs and large tables" suite
cp build/long/suite "$record/suite"
once "a bare Debian 12: both commands" tests/bare.sh bookworm run test
once "a bare Debian 12: the commands in the other order" tests/bare.sh bookworm test run
once "a bare Debian 13: both commands" tests/bare.sh trixie run test
once "a bare Debian 13: the commands in the other order" tests/bare.sh trixie test run
once "a bare Debian 12: pip install" tests/bare.sh bookworm python
once "64-bit ARM, emulated: the whole suite" tests/aarch64.sh
once "sanitizers: the whole suite, on the CPU and on the emulated device" tests/sanitize.sh --long
once "the emulated CUDA device: the whole suite, three schedules, races" tests/cuda.sh --long
once "the CUDA emulator finds every planted mistake" subprojects/emulator/tests/run.sh
once "the CUDA emulator finds every removed barrier" tests/planted.sh
once "Python: its tests, and 100,000 random programs" env SOFTBACK_TEST_LONG=1 tests/python.sh
once "20,000 steps, whose memory stays flat" tests/soak.sh
for reader in safetensors pairs metadata log; do
    once "hostile files: ten minutes of $reader" tests/fuzz.sh 600 $reader
done
