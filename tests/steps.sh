# For scripts of many steps, which read this file first. The last lines that they print say how long
# each step took, which one failed, and which could not run here; $record is a folder for notes.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1 # clones in other folders share what is compiled
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

# A script that exits with 77 says in its last line why it cannot run here.
where_possible() {
    code=0
    "$@" >"$record/output" 2>&1 || code=$?
    cat "$record/output"
    [ $code != 77 ] || tail -n 1 "$record/output" >>"$record/skipped"
    [ $code = 0 ] || [ $code = 77 ] || exit $code
}

# The suite's own last line is the last one here.
finish() {
    code=$?
    [ $code = 0 ] || name="$name: FAILED"
    finish_step
    echo
    cat "$record/times"
    printf '%5d s  all of it\n' $(($(date +%s) - began))
    cat "$record/skipped" 2>/dev/null || true
    [ $code != 0 ] || tail -n 1 "$record/suite"
    rm -rf "$record"
    exit $code
}
trap finish EXIT
