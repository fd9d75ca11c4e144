#!/bin/sh
# Builds everything for 64-bit ARM and runs it under qemu:  tests/aarch64.sh [--sample]
# The portable library computes the same bits as on x86, all gradient checks pass, and, without --sample,
# the suite passes. Needs
# gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user. Jansson and OpenBLAS for ARM come from
# Debian once, into ~/.cache/softback/aarch64; if that fails, only the portable library is tested.
set -eu
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/softback/aarch64
packages=$cache/packages
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
unset OPENBLAS_CORETYPE SOFTBACK_TEST_LONG
case ${1:-} in
'') sample= ;;
--sample) sample=yes ;;
*) echo "usage: tests/aarch64.sh [--sample]" >&2; exit 2 ;;
esac

tests/big_endian.sh
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v $tool >/dev/null || { echo "aarch64: $tool is missing; ./run tools installs it" >&2; exit 1; }
done

# Downloads packages of another architecture, and unpacks them, without installing anything: apt gets
# its own list of packages and its own state, so it needs no root.
fetch() (
    # the mirror of this Debian
    # shellcheck disable=SC2016 # apt's variables
    source=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) main' 'Created-By: Packages' \
        'Component: main' "Codename: $(. /etc/os-release && echo "$VERSION_CODENAME")" | head -n 1)
    [ -n "$source" ] || exit 1
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/fetch-XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    mkdir -p state/lists/partial cache/archives/partial root
    : >state/status
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "$source" >sources.list
    cat >apt.conf <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::http::Timeout "20";
Dir::State "$work/state";
Dir::State::status "$work/state/status";
Dir::Cache "$work/cache";
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
END
    export APT_CONFIG="$work/apt.conf"
    { apt-get update && apt-get download libjansson4 libjansson-dev libopenblas0-pthread \
        libopenblas-pthread-dev libgfortran5; } >log 2>&1 || { tail -n 3 log >&2; exit 1; }
    for package in *.deb; do
        dpkg-deb -x "$package" root || exit 1
    done
    [ -d "$packages" ] || mv root "$packages" # another run may have made it meanwhile
)

build=build/aarch64
[ -d "$packages" ] || fetch || build=

# set_up FOLDER OPTION...
set_up() {
    [ ! -f "$1/build.ninja" ] || return 0
    mkdir -p "$1"
    compiler="'aarch64-linux-gnu-gcc'"
    ! command -v ccache >/dev/null || compiler="'ccache', $compiler"
    printf "[constants]\npackages = '%s'\ncompiler = [%s]\n" "$packages" "$compiler" >"$1/packages.ini"
    meson setup "$@" --cross-file "$1/packages.ini" --cross-file tests/aarch64.ini \
        >"$1/setup.log" 2>&1 || { cat "$1/setup.log"; exit 1; }
}
compile() {
    folder=$1
    shift
    ninja -C "$folder" "$@" >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }
}

set_up build/aarch64-portable -Dportable=true
compile build/aarch64-portable portable-train
if [ "$build" ]; then
    set_up $build -Dcuda=disabled -Dmpi=disabled -Dcriterion=disabled -Dtests=enabled
    targets=
    [ -z "$sample" ] || targets=softback
    # shellcheck disable=SC2086 # no target, or one
    compile $build $targets
fi

# This takes one core 90 seconds, so it runs in the background.
qemu-aarch64 build/aarch64-portable/portable-train >build/aarch64-portable/losses 2>&1 &
portable=$!
trap 'kill $portable 2>/dev/null || true' EXIT

suite=0
if [ -z "$build" ]; then
    echo "aarch64: no packages for ARM"
else
    OMP_WAIT_POLICY=passive qemu-aarch64 $build/softback gradcheck >$build/gradcheck.log 2>&1 || {
        cat $build/gradcheck.log
        exit 1
    }
    echo "aarch64: all gradient checks pass"
fi
if [ "$build" ] && [ -z "$sample" ]; then # an emulated test may take thirty times as long
    SOFTBACK_TEST_WRAPPER=qemu-aarch64 tests/suite.sh $build --limit=1800 >$build/suite.log || suite=$?
    sed '$d' $build/suite.log
fi

trap - EXIT
wait $portable || { cat build/aarch64-portable/losses; exit 1; }
fingerprint=$(sed -n 's/^fingerprint //p' build/aarch64-portable/losses)
grep -q "\`$fingerprint\`" docs/install.md || {
    echo "aarch64: the portable fingerprint is $fingerprint, docs/install.md has a different one" >&2
    exit 1
}
echo "aarch64: the portable library computes the bits of x86, fingerprint $fingerprint"
[ "$build" ] || { echo "skipped: aarch64: no packages for ARM: only the portable library was tested"; exit 77; }
[ "$sample" ] || tail -n 1 $build/suite.log
exit $suite
