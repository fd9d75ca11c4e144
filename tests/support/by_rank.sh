#!/bin/sh
# Different arguments for ranks, under mpirun:  by_rank.sh PROGRAM A... and B...
# Ranks 0 and 1 run PROGRAM A..., the others PROGRAM B... mpirun's own syntax with a colon crashes Open
# MPI 5.0.7.
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
