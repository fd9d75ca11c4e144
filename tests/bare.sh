#!/bin/sh
# A minimal Debian made by debootstrap, with the commit and nothing else: a newcomer's machine.
#
#   tests/bare.sh bookworm|trixie [run|test|sample|python]...     README's commands, as typed
#
# run     ./run must end with a trained model; then, as a user without root, sudo or network,
#         ./run build must still work, since nothing is missing
# test    ./run test must end with "N passed, 0 failed"
# sample  the same for some suites, and all gradient checks
# python  pip install . into a fresh virtual environment must give a package that computes; its wheel, of at
#         most 10 MB and with the licence, must install on the same system without a compiler
#
# The commit is in a folder with a space in its name; bookworm has it without .git, as in a tarball. No
# compiler may warn. The base, with ccache, is kept as a tarball in a cache folder outside the tree, as are
# packages; ccache's folder is this system's, whose objects are the same if it is this release. Needs root
# and debootstrap; if it cannot run, its last line begins with "skipped: " and it exits with 77.
set -eu
cd "$(dirname "$0")/.."
release=${1:-}
case $release in
bookworm | trixie) shift ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
[ $# -gt 0 ] || set -- run test
cache=${XDG_CACHE_HOME:-$HOME/.cache}/softback/$release
base=$cache/base.tar
objects=$(ccache --get-config=cache_dir 2>/dev/null) || objects=$cache/objects
mkdir -p "$cache/packages" "$objects"

skip() {
    echo "skipped: $release: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "a bare system needs root"
command -v debootstrap >/dev/null || skip "debootstrap is missing"

work=$(mktemp -d "${TMPDIR:-/tmp}/softback-bare.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
if [ ! -f "$base" ]; then
    mkdir -p "$work/base"
    debootstrap --variant=minbase --include=ccache "$release" "$work/base" >"$work/log" 2>&1 || {
        tail -n 3 "$work/log"
        skip "debootstrap could not fetch its base"
    }
    rm -f "$work"/base/var/cache/apt/archives/*.deb
    tar -C "$work/base" -cf "$base.part" .
    mv "$base.part" "$base"
fi
root=$work/root
home="$root/srv/soft back"
mkdir "$root"
tar -C "$root" -xf "$base"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
if [ $release = bookworm ]; then
    mkdir -p "$home"
    git archive HEAD | tar -C "$home" -xf -
else
    git clone -q --no-hardlinks . "$home"
fi

# inside COMMAND: a shell in the bare system, with its own mounts and processes, which end with it
inside() {
    unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc "$1/proc" && mount -t tmpfs tmp "$1/tmp" &&
            mkdir -p "$1/dev/shm" "$1/srv/objects" && mount -t tmpfs shm "$1/dev/shm" &&
            mount --bind "$3/packages" "$1/var/cache/apt/archives" && mount --bind "$4" "$1/srv/objects" &&
            exec chroot "$1" env -i HOME=/root CCACHE_DIR=/srv/objects CCACHE_NOHASHDIR=1 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                ${http_proxy:+http_proxy="$http_proxy"} ${SSL_CERT_FILE:+PIP_CERT=/etc/pip.pem} \
                ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} sh -c "cd \"/srv/soft back\" && $2"' sh "$root" "$1" "$cache" "$objects"
}

passed=0 failed=0
# step NAME COMMAND EXPECTED: the command exits with 0, and a line of its output matches
step() {
    began=$(date +%s)
    if inside "$2" >"$work/output" 2>&1 </dev/null && grep -qE "$3" "$work/output"; then
        passed=$((passed + 1)) result=passed
    else
        failed=$((failed + 1)) result=FAILED
        tail -n 60 "$work/output"
    fi
    echo "$release: $1: $result, $(($(date +%s) - began)) s"
}

no_warning() {
    if grep -h -A 5 'warning:' "$home"/build/build.log; then
        failed=$((failed + 1))
        echo "$release: the compiler warns: FAILED"
    fi
}

python_needs="apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    gcc libc6-dev pkg-config libopenblas-pthread-dev libjansson-dev python3-venv"
kept='--config-settings=build-dir=/srv/build' # so that it is built once
python_computes="cd / && /srv/venv/bin/python -c '
import softback as sb
assert sb.gradcheck(sb.softmax, [[1.0, 2.0, 0.5]]).method == \"exact\"
assert \"softmax\" in str(sb.explain(\"softmax\"))
print(\"ok\")' && /srv/venv/bin/softback info --devices"

for command in "$@"; do
    case $command in
    run)
        # the registry answers: any later failure is softback's
        inside 'apt-get update' >"$work/output" 2>&1 </dev/null || {
            tail -n 3 "$work/output"
            skip "the registry of packages does not answer"
        }
        rm -rf "$root"/var/lib/apt/lists/*
        step './run' './run' '^model  *build/demo/dates.safetensors$'
        sed -n '/^Building/p;/^trained/p;/^best/p' "$work/output"
        no_warning
        step 'without root, sudo and network' \
            'chown -R 65534 . && unshare --net setpriv --reuid=65534 --clear-groups ./run build' \
            '^Building'
        ;;
    test)
        step './run test' 'chown -R 0 . && ./run test' '^[1-9][0-9]* passed, 0 failed$'
        tail -n 1 "$work/output"
        no_warning
        ;;
    sample)
        step './run test, some suites' "chown -R 0 . &&
            ./run test '--filter=@(attention*|linear|matmul|program|softmax|trainer)/*' && ./softback gradcheck" \
            '^[1-9][0-9]* passed, 0 failed$'
        no_warning
        ;;
    python)
        [ -z "${SSL_CERT_FILE:-}" ] || cp "$SSL_CERT_FILE" "$root/etc/pip.pem"
        step 'pip install .' "$python_needs &&
            python3 -m venv /srv/venv && /srv/venv/bin/pip install . $kept && $python_computes" '^ok$'
        step 'its wheel without a compiler' "/srv/venv/bin/pip wheel --no-deps -w /srv/wheel . $kept &&
            find /srv/wheel -name '*.whl' -size -10000001c | grep . &&
            python3 -m zipfile -l /srv/wheel/*.whl | grep licenses/LICENSE &&
            apt-get remove -y binutils && ! command -v cc && rm -r /srv/venv &&
            python3 -m venv /srv/venv && /srv/venv/bin/pip install /srv/wheel/*.whl &&
            $python_computes" '^ok$'
        ls -sh "$root/srv/wheel"
        ;;
    *)
        echo "\"$command\" is none of run, test, sample and python." >&2
        exit 2
        ;;
    esac
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
