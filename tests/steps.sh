# Sourced by scripts of many steps. Their last lines are the time of each step and the time of processors
# in it, the step that failed, and those that could not run here; $record is a folder for notes.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1 # clones in other folders share the cache
lane=${record:+yes} # this process runs one lane of a script that has begun
export record="${record:-$(mktemp -d)}"
began=$(date +%s)
name=

# The seconds that processors have worked for what this shell has waited for.
count_work() {
    times >"$record/worked.$$" # not in a subshell, whose time begins at 0
    worked=$(sed -n '2s/[ms]/ /gp' "$record/worked.$$" | awk '{ printf "%d", 60 * ($1 + $3) + $2 + $4 }')
}

finish_step() {
    count_work
    [ -z "$name" ] || printf '%5d s %5d core s  %s\n' $(($(date +%s) - step_began)) \
        $((worked - step_worked)) "$name" >>"$record/times"
    name=
}

step() {
    finish_step
    name=$*
    step_began=$(date +%s)
    count_work
    step_worked=$worked
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

# lanes NAME...: the steps of a lane run one after the other, and those of two lanes at the same time,
# since a step often waits: so each lane has its own folders. `.ci/run NAME` runs one lane. The output of
# a lane comes when it ends.
lanes() {
    finish_step
    printf '%s\n' "$@" | xargs -P 2 -I LANE sh -c '
        sh .ci/run "$1" >"$record/lane.$1" 2>&1 </dev/null
        code=$?
        cat "$record/lane.$1"
        exit $code' lane LANE
}

# The last line of the suite is printed last.
finish() {
    code=$?
    [ $code = 0 ] || name="${name:+$name: FAILED}"
    finish_step
    [ -z "$lane" ] || exit $code
    echo
    cat "$record/times"
    printf '%5d s %5d core s  total\n' $(($(date +%s) - began)) "$worked"
    cat "$record/skipped" 2>/dev/null || true
    [ $code != 0 ] || tail -n 1 "$record/suite" 2>/dev/null || true
    rm -rf "$record"
    exit $code
}
trap finish EXIT
