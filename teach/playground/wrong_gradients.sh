#!/bin/sh
# What training with wrong gradients of softmax leads to: the model of the live page, each task, rate
# and seed, 600 steps. wrong_gradients.sh LOSSES [SEEDS] prints a table for teach/wrong_gradients.md:
# right digits of held-out pairs in per cent, mean and standard error over the seeds. LOSSES is
# playground-losses of a portable build; 8 seeds are 432 runs, 10 minutes of one core.
set -eu
losses=$1 seeds=${2:-8}
mistake='a * (1 - a) * g' centred='a * (1 - a) * (g - sum(a * g))'

run() { # run TASK RATE RULE: a line of numbers, the share of each seed
    for seed in $(seq "$seeds"); do
        "$losses" 600 600 "$seed" 1 "$3" "$1" "$2" | sed -n 's/^right //p'
    done | awk '
        { x = 100 * $1; sum += x; squares += x * x; learnt += x >= 99; n++ }
        END {
            mean = sum / n
            variance = n > 1 ? (squares - n * mean * mean) / (n - 1) : 0
            printf " | %.0f ± %.0f", mean, sqrt((variance > 0 ? variance : 0) / n)
            if (learnt) printf " (%d)", learnt
        }'
}

echo '| task | rate | a(g − avg) | a(1 − a)g | less its mean | a(1 − a)(g − avg) | less its mean | 0 |'
echo '|---|---|---|---|---|---|---|---|'
for task in 'copy 0' 'reverse 1' 'sort 2'; do
    for rate in 0.001 0.003 0.01; do
        printf '| %s | %s' "${task% *}" "$rate"
        for rule in '' "$mistake" "$mistake - mean($mistake)" "$centred" "$centred - mean($centred)" 0; do
            run "${task#* }" $rate "$rule"
        done
        echo ' |'
    done
done
