#!/bin/sh
# Runs the suite of a build folder and ends with one line, "N passed, N failed". Further arguments are
# passed to the suite, such as "--filter=softmax/*". SOFTBACK_TEST_WRAPPER runs programs for another processor.
# A real device needs the plain runner (-Dcriterion=disabled).
set -u
build=$1
shift
results=$(mktemp)
trap 'rm -f "$results"' EXIT
jobs=--jobs=$(env -u OMP_NUM_THREADS nproc)
# Processes take turns on a real device, and opening it takes longer than most tests.
case ${SOFTBACK_TEST_DEVICE:-cpu}:${SOFTBACK_CUDA:-emulated} in
cpu:* | *emulated*) ;;
*) jobs='--jobs=4 --by-suite' ;;
esac
# shellcheck disable=SC2086 # no word, or some
OMP_WAIT_POLICY=passive ${SOFTBACK_TEST_WRAPPER:-} "$build/softback-tests" $jobs "$@" 2>&1 | tee "$results" | grep -v '^\[====\]'
closing=$(tail -n 1 "$results")
case $closing in
*' passed, 0 failed') # the plain runner has printed its last line
    [ "${closing%% *}" -gt 0 ]
    exit
    ;;
*' passed, '*' failed') exit 1 ;;
esac
tested=$(sed -n 's/.*Tested: [^0-9]*\([0-9]*\).*/\1/p' "$results")
passing=$(sed -n 's/.*Passing: [^0-9]*\([0-9]*\).*/\1/p' "$results")
echo "${passing:-0} passed, $((${tested:-1} - ${passing:-0})) failed"
[ "${tested:-0}" -gt 0 ] && [ "$tested" = "$passing" ]
