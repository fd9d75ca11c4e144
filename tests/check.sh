# For tests in shell: passed and failed count checks; a command prints to $work/output.
passed=0 failed=0

check() { # check STATUS SENTENCE: counts it; shows $work/output if it failed
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $2"
        head -n 20 "$work/output" | sed 's/^/    /'
    fi
    : >"$work/output"
}
