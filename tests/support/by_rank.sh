#!/bin/sh
# Ranks with arguments of their own, under mpirun:  by_rank.sh PROGRAM A... and B...
# Ranks 0 and 1 run PROGRAM A..., the others PROGRAM B... It stands in for mpirun's own colon, on which
# Open MPI 5.0.7 crashes.
program=$1 part=first
shift
left=$#
[ "${OMPI_COMM_WORLD_RANK:?}" -lt 2 ] && own=first || own=second
while [ $left -gt 0 ]; do
    word=$1
    shift
    left=$((left - 1))
    if [ "$word" = and ]; then
        part=second
    elif [ $part = $own ]; then
        set -- "$@" "$word"
    fi
done
exec "$program" "$@"
