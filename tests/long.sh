#!/bin/sh
# Tests that take hours, to be run before a release: ./run test --long. The last line is the suite's
# "N passed, N failed".
set -eu
cd "$(dirname "$0")/.."
. tests/steps.sh

step "the suite, with matrices of seeds, long inputs and large tables"
SOFTBACK_TEST_LONG=1 tests/suite.sh build >"$record/suite" 2>&1 || {
    cat "$record/suite"
    exit 1
}
cat "$record/suite"

step "a bare Debian 12 and 13: both commands, in either order"
where_possible tests/bare.sh bookworm run test
where_possible tests/bare.sh bookworm test run
where_possible tests/bare.sh trixie test run

step "64-bit ARM, emulated: the whole suite"
tests/aarch64.sh

step "the whole suite on the emulated CUDA device: three schedules, sanitizers, races"
tests/cuda.sh --long

step "the CUDA emulator finds every planted mistake and every removed barrier"
tests/emulator.sh
tests/planted.sh

step "20,000 steps, whose memory stays flat"
tests/soak.sh

step "hostile files: ten minutes for each reader"
tests/fuzz.sh 600 safetensors pairs metadata log
