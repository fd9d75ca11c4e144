#!/bin/sh
# No file or function is too long to read: a source file has at most 900 lines (except ops/ops.h, which
# lists all operations; teach/micro.c, the library in one page, has 510), and the body of a function outside
# the tests 50. Prints each one that is longer; exits with 1 if there is one.
cd "$(dirname "$0")/.." || exit 2
git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' | xargs awk '
    function file_ends() {
        limit = path == "teach/micro.c" ? 510 : 900
        if (lines > limit && path != "ops/ops.h") {
            print path " has " lines " lines, more than " limit
            bad = 1
        }
    }
    FNR == 1 {
        if (path) file_ends()
        path = FILENAME
        end = ""
    }
    { lines = FNR }
    # A brace on its own line begins a function if the line above ends with parameters.
    path !~ /^tests\// && !end && /^ *[{]$/ && above ~ /[)]( const| noexcept| override)*$/ {
        end = substr($0, 1, length($0) - 1) "}"
        begin = FNR
    }
    end && $0 == end {
        if (FNR - begin - 1 > 50) {
            print path ":" begin ": a function of " FNR - begin - 1 " lines, more than 50"
            bad = 1
        }
        end = ""
    }
    { above = $0 }
    END {
        file_ends()
        exit bad
    }'
