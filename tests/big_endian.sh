#!/bin/sh
# A big-endian processor is refused with a message when the build is configured.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/big.ini" <<END
[binaries]
c = 'cc'
[properties]
needs_exe_wrapper = true
[host_machine]
system = 'linux'
cpu_family = 's390x'
cpu = 's390x'
endian = 'big'
END
if meson setup "$work/build" --cross-file "$work/big.ini" >"$work/log" 2>&1; then
    echo "big-endian: a big-endian processor is not refused" >&2
    exit 1
fi
grep -o 'The processor (s390x) is big-endian; .*' "$work/log" || { cat "$work/log"; exit 1; }
