# Sourced by scripts of many steps. Their last lines are the time of each step, the one that failed, and
# those that could not run here; $record is a folder for notes.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1 # clones in other folders share the cache
record=$(mktemp -d)
began=$(date +%s)
name=

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
    "$@" >"$record/output" 2>&1 || code=$?
    cat "$record/output"
    [ $code != 77 ] || tail -n 1 "$record/output" >>"$record/skipped"
    [ $code = 0 ] || [ $code = 77 ] || exit $code
}

# The last line of the suite is printed last.
finish() {
    code=$?
    [ $code = 0 ] || name="$name: FAILED"
    finish_step
    echo
    cat "$record/times"
    printf '%5d s  total\n' $(($(date +%s) - began))
    cat "$record/skipped" 2>/dev/null || true
    [ $code != 0 ] || tail -n 1 "$record/suite"
    rm -rf "$record"
    exit $code
}
trap finish EXIT
