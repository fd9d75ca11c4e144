# Sourced by scripts of many steps. Their last lines are the time of each step, the one that failed, and
# those that could not run here; $record is a folder for notes.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1 # clones in other folders share the cache
record=$(mktemp -d)
began=$(date +%s)
name=
beside=

finish_step() {
    [ -z "$name" ] || printf '%5d s  %s\n' $(($(date +%s) - step_began)) "$name" >>"$record/times"
    name=
}

step() {
    finish_step
    name=$*
    step_began=$(date +%s)
    echo
    echo "== $*"
}

# A script that cannot run here exits with 77; its last line is the reason.
where_possible() {
    code=0
    output=$(mktemp "$record/output.XXXXXX")
    "$@" >"$output" 2>&1 || code=$?
    cat "$output"
    [ $code != 77 ] || tail -n 1 "$output" >>"$record/skipped"
    [ $code = 0 ] || [ $code = 77 ] || exit $code
}

# beside FUNCTION: its steps run while the next ones do, and must use other build folders. Their
# output comes last, in one piece; where one has failed, so have all.
beside() {
    (
        trap 'end_steps $?' EXIT
        name=
        "$@"
    ) >"$record/beside" 2>&1 </dev/null &
    beside=$!
}

# end_steps CODE: ends the step that is under way; the code is that with which it ended.
end_steps() {
    [ "$1" = 0 ] || name="$name: FAILED"
    finish_step
}

# Waits for the steps beside.
join() {
    [ "$beside" ] || return 0
    joined=0
    wait "$beside" || joined=$?
    cat "$record/beside"
    return $joined
}

# The last line of the suite is printed last.
finish() {
    code=$?
    end_steps $code
    join || code=$?
    echo
    cat "$record/times"
    printf '%5d s  total\n' $(($(date +%s) - began))
    cat "$record/skipped" 2>/dev/null || true
    [ $code != 0 ] || tail -n 1 "$record/suite"
    rm -rf "$record"
    exit $code
}
trap finish EXIT
