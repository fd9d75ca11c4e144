#!/bin/sh
# Trains for 20,000 steps and watches the memory of the process:  tests/soak.sh [steps]
# Takes the program from build/. Exits with 1 when the second half needs more than the first.
set -eu
cd "$(dirname "$0")/.."
steps=${1:-20000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/softback train --task reverse --max-length 8 --width 16 --heads 2 --encoder-layers 1 \
    --decoder-layers 1 --batch-pairs 8 --dropout 0.1 --average 0.99 --evaluate-pairs 20 \
    --threads 1 --steps "$steps" --out "$work/model.safetensors" >"$work/out" 2>"$work/err" &
process=$!
while kill -0 "$process" 2>/dev/null; do
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$process/status" 2>/dev/null || true
    sleep 0.1
done >"$work/kilobytes"
wait "$process" || { cat "$work/err"; exit 1; }
awk -v steps="$steps" '
    { size[NR] = $1 }
    END {
        for (i = int(NR / 10) + 1; i <= NR; i++) { # the first tenth warms up
            half = i <= NR / 2 ? 1 : 2
            most[half] = size[i] > most[half] ? size[i] : most[half]
        }
        printf "soak: %d steps, at most %d kB in the first half and %d kB in the second\n", steps, most[1], most[2]
        exit !(NR >= 20 && most[2] <= 1.02 * most[1])
    }' "$work/kilobytes"
