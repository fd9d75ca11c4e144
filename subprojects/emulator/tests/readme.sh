#!/bin/sh
# Runs the commands of README.md in a scratch folder: each must succeed, and they must print the lines of
# the text blocks, in this order. Its pieces of code are in the examples. Ends with "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in *; do # not a build folder
    [ "$file" = build ] || ln -s "$PWD/$file" "$work"
done

blocks() { # blocks LANGUAGE
    awk -v begin="\`\`\`$1" '$0 == begin {inside = 1; next} /^```/ {inside = 0} inside' README.md
}

blocks sh >"$work/commands"
blocks text >"$work/shown"
passed=0 failed=0
check() { # check STATUS SENTENCE
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED: $2"
        tail -n 20 "$work/printed" "$work/errors"
    fi
}

(cd "$work" && sh -e commands) >"$work/printed" 2>"$work/errors" </dev/null
check $? "the commands succeed"
# What builds the emulator prints before the first line that the page shows.
sed -n "/^$(head -n 1 "$work/shown")\$/,\$p" "$work/printed" | cmp -s - "$work/shown"
check $? "they print what the page shows"
blocks cpp | while read -r line; do
    grep -qF -- "$line" examples/*.cu || echo "$line"
done >"$work/printed"
[ ! -s "$work/printed" ]
check $? "each line of the page's kernels is in the examples"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
