#!/bin/sh
# ./run on other machines: with tools missing, without root, while another program holds apt's lock,
# with a build folder that was copied. Tools are small scripts here, which record how they are called,
# so that this takes seconds. Ends with "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/check.sh

stub() { # stub NAME LINES...: a tool that records its arguments, then runs these lines
    name=$1
    shift
    rm -f "$work/bin/$name"
    { echo '#!/bin/sh'; echo "echo \"$name \$*\" >>'$work/calls'"; printf '%s\n' "$@"; } >"$work/bin/$name"
    chmod +x "$work/bin/$name"
}

without() { # without TOOLS...
    for tool in "$@"; do rm -f "$work/bin/$tool"; done
}

# A machine with all tools of ./run, a user who is not root, and neither sudo nor apt-get.
machine() {
    rm -rf "$work/bin" "$work/a tree" "$work/calls"
    mkdir -p "$work/bin" "$work/a tree/teach"
    cp run "$work/a tree"
    : >"$work/calls"
    for tool in awk cat cp dirname env grep head ln ls mkdir mktemp rm sed sh sleep sort tee tr; do
        ln -s "$(command -v $tool)" "$work/bin/$tool"
    done
    stub id 'echo 1000'
    for tool in cc c++ mpicc mpirun; do stub $tool; done
    stub pkg-config '[ "$1" != --libs ] || echo -lopenblas'
    stub meson 'while [ "$1" != build ]; do shift; done' 'mkdir -p build/meson-private' '>build/build.ninja'
    stub ninja 'i=0; while [ $i -lt 10 ]; do i=$((i + 1)); echo "${i}0% $i 10 made"; done'
    stub lesson
    printf '#!/bin/sh\necho the lesson\n' >"$work/a tree/teach/lesson.sh"
    chmod +x "$work/a tree/teach/lesson.sh"
}

run() { # run ARGUMENTS: in the tree, into $work/output
    (cd "$work/a tree" && PATH=$work/bin ./run "$@") >"$work/output" 2>&1
}
shows() { grep -qF -e "$1" "$work/output"; }
called() { grep -qE -e "$1" "$work/calls"; }

# apt-get that installs meson, after LOCKED calls that found the lock held
registry() {
    stub id 'echo 0'
    stub apt-get "n=\$(cat '$work/locked')" 'if [ $n -gt 0 ]; then' "    echo \$((n - 1)) >'$work/locked'" \
        '    echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt)" >&2' \
        '    exit 100' 'fi' \
        "[ \"\$1\" = update ] || cp '$work/meson' '$work/bin/meson'"
    stub sleep
    echo "$1" >"$work/locked"
    mv "$work/bin/meson" "$work/meson"
}

try_missing() {
    machine
    run build && shows 'Building   library, program' && shows '100% 10 of 10' && called '^ninja .*program$'
    check $? "without root, sudo and apt-get it builds if nothing is missing"
    machine && without meson
    ! run build && shows 'Missing (names of Debian' && shows meson
    check $? "without apt-get it names the missing packages"
    machine && without meson && stub apt-get
    ! run build && shows 'as root' && shows 'apt-get install --no-install-recommends meson' && ! called '^apt-get'
    check $? "without root and sudo it prints the command for root"
    machine && without meson && stub apt-get && stub sudo '"$@"'
    ! run build && called '^sudo env DEBIAN_FRONTEND=noninteractive apt-get install .*meson' && shows 'Still missing'
    check $? "with sudo it installs, and checks the result"
    machine && without c++ && run build && ! run test && shows 'g++'
    check $? "only the test command needs a C++ compiler"
    machine && stub cc 'exit 1' && ! run build && shows gcc && shows libc6-dev
    check $? "a compiler without the C library's headers is not enough"
}

try_registry() {
    machine && registry 0
    run build && shows 'Installing meson' && ! shows 'waiting'
    check $? "as root it installs missing packages"
    machine && registry 2
    run build && [ "$(grep -c 'waiting until' "$work/output")" = 1 ] && called '^sleep' &&
        called '^apt-get install'
    check $? "it waits while another program holds the lock, and reports it once"
    machine && without meson && stub id 'echo 0' && stub apt-get 'echo "E: no such mirror" >&2; exit 100'
    ! run build && shows 'no such mirror'
    check $? "the message of apt-get is shown when it fails"
}

try_folders() {
    machine && mkdir -p "$work/a tree/build/meson-info" "$work/other" && : >"$work/a tree/build/build.ninja" &&
        echo "{\"directories\": {\"source\": \"$work/other\", \"build\": \"$work/other/build\", \"info\": \"\"}}" \
            >"$work/a tree/build/meson-info/meson-info.json"
    ! run build && shows "was made in another folder, $work/other; remove it (rm -r build)" && ! called '^ninja'
    check $? "a build folder that was copied is refused with a message"
    machine && mkdir -p "$work/a tree/build/meson-info" && : >"$work/a tree/build/build.ninja" &&
        echo "{\"directories\": {\"source\": \"$work/a tree\", \"build\": \"$work/a tree/build\", \"info\": \"\"}}" \
            >"$work/a tree/build/meson-info/meson-info.json"
    run build && ! called '^meson' && called '^ninja'
    check $? "its own build folder is used again"
    machine && mkdir -p "$work/a tree/build/meson-private" && : >"$work/a tree/build/meson-private/half"
    run build && [ ! -e "$work/a tree/build/meson-private/half" ] && called '^meson setup'
    check $? "a set-up that was interrupted starts again"
    machine && stub ninja 'echo "10% 1 10 made"; echo "FAILED: tape.o"; echo "tape.c:1: error: no"; exit 1'
    ! run build && shows 'tape.c:1: error: no'
    check $? "a build that fails shows the compiler's message"
    machine && stub meson 'echo "ERROR: too old" >&2; exit 1'
    ! run build && shows 'too old'
    check $? "a set-up that fails shows Meson's message"
}

try_parts() {
    machine && run lesson 1 && shows 'the lesson' && called '^ninja .* library$' && ! called '^ninja .*program'
    check $? "a lesson needs only the library"
    machine && [ "$(cd "$work/a tree" && PATH=$work/bin ./run lesson --all --json 2>/dev/null)" = 'the lesson' ]
    check $? "what is built for a lesson is not reported where its JSON is"
    machine && run build && run build && [ "$(grep -c '^meson' "$work/calls")" = 1 ] &&
        stub nvidia-smi 'echo 9.0' && run build && called '^meson setup --reconfigure build'
    check $? "a build folder is configured once, and again when a GPU was added"
    machine && ! run nonsense && shows './run test'
    check $? "an unknown command prints the usage"
}

# A machine whose builds make a live page, a site and a report.
site_machine() {
    machine && mkdir -p "$work/a tree/docs" "$work/a tree/build"
    stub meson 'mkdir -p build/playground/teach/playground' '>build/build.ninja' '>build/playground/build.ninja' \
        'echo "<a data-lesson=\"09_online\">9</a>" >build/playground/teach/playground/playground.html'
    for tool in clang clang++ wasm-ld llvm-ar pandoc python3; do stub $tool; done
    stub site.sh && mv "$work/bin/site.sh" "$work/a tree/docs"
    stub softback 'while [ "$1" != --report ]; do shift; done' 'echo >"$2"' && mv "$work/bin/softback" "$work/a tree/build"
}

try_site() {
    [ -d /usr/include/wasm32-wasi ] || { echo "run: wasi-libc is missing, so ./run site is not tested"; return; }
    site_machine && run site && shows 'Training   the model of' && shows 'a minute or two' &&
        called '^site.sh build/site teach/playground.html build/demo/dates.html $' &&
        grep -q 'data-lesson="09_online"' "$work/a tree/teach/playground.html"
    check $? "the site says that it trains, and for how long"
    run site --address https://example.org/a-b/ && shows 'build/demo/dates.html, which an earlier run made' && ! shows Training &&
        called '^site.sh .* https://example.org/a-b$' &&
        grep -q 'href="https://example.org/a-b/teach/lessons/09_online.html"' "$work/a tree/teach/playground.html"
    check $? "it uses the report that is there; with an address, the live page leads to the site's lessons"
    for given in '--address' '--address example.org' '--address https://a|b' '--adress https://example.org' '--address https://a b'; do
        # shellcheck disable=SC2086 # several words
        run site $given
        [ $? = 2 ] && shows "\"$given\" is unknown" || echo "$given" >>"$work/refused"
    done
    [ ! -e "$work/refused" ]
    check $? "it refuses what is no address"
}

try_missing
try_registry
try_folders
try_parts
try_site
echo "$passed passed, $failed failed"
[ $failed = 0 ]
