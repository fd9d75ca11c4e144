#!/bin/sh
# Measures the table of teach/ranks.md again: what rank 0 sends in the tenth training step, next to
# the formula, in bytes. Needs Open MPI's mpirun; SOFTBACK is the program ("./softback" otherwise).
set -eu
cd "$(dirname "$0")/.."
softback=${SOFTBACK:-./softback}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pairs=8 length=32 width=32 hidden=64
export OMPI_MCA_mpi_yield_when_idle=1 # ranks may be more than processors

# 32 letters, and the first 31 of them again, with which begin or end goes.
awk -v L=$length 'BEGIN {
    for (n = 1; n <= 64; n++) {
        text = ""
        for (i = 1; i <= L; i++)
            text = text substr("abcdefgh", 1 + n * i * i % 89 % 8, 1)
        print text "\t" substr(text, 1, L - 1)
    }
}' >"$work/pairs.tsv"

train() { # train RANKS SPLIT: rank 0's bytes in step 10, and how many parameters there are
    mpirun --oversubscribe --bind-to none -n "$1" "$softback" train --data "$work/pairs.tsv" \
        --valid "$work/pairs.tsv" --evaluate-pairs 0 --source-units characters \
        --target-units characters --width $width --heads 4 --feed-forward $hidden \
        --encoder-layers 1 --decoder-layers 1 --batch-pairs $pairs --steps 10 --threads 1 \
        --split "$2" --out "$work/m" >"$work/out"
    sed -n '/"step":10,/s/.*"sent":\([0-9]*\).*/\1/p' "$work/m.jsonl"
    sed -n 's/^model .* \([0-9,]*\) parameters/\1/p' "$work/out" | tr -d ,
    rm -f "$work"/m*
}

# row RANKS WHAT=SHARERS: neighbours share sequences or heads, and their groups the batch. There are
# three attentions and two feed-forwards.
row() {
    numbers=$(train "$1" "$2")
    echo "$numbers" | tr '\n' ' ' | awk -v P="$1" -v what="${2%=*}" -v R="${2#*=}" \
        -v B=$pairs -v L=$length -v C=$width -v F=$hidden '
    function count(n) {
        return n < 1000 ? n : count(int(n / 1000)) sprintf(",%03d", n % 1000)
    }
    function sum(n, ranks) {
        return 2 * (ranks - 1) / ranks * n
    }
    {
        sent = $1
        N = $2
        heads = what == "heads"
        Q = heads ? P / R : P
        cut = heads ? 3 * (4 * C * C + 3 * C) + 2 * (2 * C * F + F) : 0
        gradient = 4 * sum(N - cut + cut / R, Q)
        BLC = B * R / P * L * C
        within = R == 1 ? 0 : 4 * (heads ? 11 * sum(BLC, R) : 3 * 3 * (R - 1) / R * 2 * BLC)
        rest = (Q > 1 ? 24 : 0) + (heads ? 8 * (2 * R - 1) : 0)
        printf "| %d | %s | %s | %s | %s | %s | %s |\n", P,
            (R < P ? "batch" : "") (R > 1 && R < P ? ", " : "") (R > 1 ? what : ""),
            count(gradient), count(within), rest, count(gradient + within + rest), count(sent)
    }'
}

echo "| ranks | split | gradient | within layers | rest | total | measured |"
echo "|---|---|---:|---:|---:|---:|---:|"
row 2 sequence=1
row 4 sequence=1
row 2 heads=2
row 4 heads=4
row 4 heads=2
row 2 sequence=2
row 4 sequence=4
row 4 sequence=2
