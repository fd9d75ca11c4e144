#!/bin/sh
# Makes a static site, for any host of files or from disk: docs/site.sh FOLDER PAGE REPORT [ADDRESS], where PAGE is
# teach/playground.html, REPORT a page of `softback report`, and ADDRESS where the site will be. Needs python3; Sphinx comes from PyPI, in the
# versions of docs/requirements.txt, into a cache folder. Where that fails it says so and exits with 77.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
site=$(cd "$1" && pwd) live=$2 report=$3
tools=${XDG_CACHE_HOME:-$HOME/.cache}/softback/site
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! cmp -s docs/requirements.txt "$tools/requirements.txt"; then
    echo "Installing Sphinx into $tools"
    { python3 -m venv "$tools" && "$tools/bin/python" -m pip install -q -r docs/requirements.txt &&
        cp docs/requirements.txt "$tools"; } >"$work/log" 2>&1 || {
        cat "$work/log"
        echo "skipped: site: pip cannot install what docs/requirements.txt lists"
        exit 77
    }
fi

# A folder like the tree, with the pages of docs/ and those that are made at its top. Of a checkout it has what git
# lists; otherwise all but folders of builds.
{ git ls-files -co --exclude-standard 2>/dev/null | grep . ||
    find . -name '.?*' -prune -o -type d -exec test -e '{}/meson-info' \; -prune -o -path ./build -prune -o -type f -print; } |
    while read -r path; do [ ! -f "$path" ] || echo "$path"; done | tar cf - -T - | tar xf - -C "$work"
mv "$work"/docs/*.md "$work"
echo "Building   the site"
mkdir "$work/package"
python=$tools/bin/python
export PYTHONDONTWRITEBYTECODE=1
"$python" python/generate.py . "$work/package"
"$python" docs/reference.py "$work/package" "$work/reference"
"$python" docs/notebook.py python/tutorial.ipynb >"$work/tutorial.md"
rm -rf "$site"
SOFTBACK_ADDRESS=${4:-} "$tools/bin/sphinx-build" -q -E -W --keep-going -d "$work/doctrees" -c docs "$work" "$site"
sed 's|data-lesson="\([^"]*\)"|href="teach/lessons/\1.html"|g' "$live" >"$site/live.html"
cp "$report" "$site/report.html"
! command -v pandoc >/dev/null || SOFTBACK_SITE=$site teach/book.sh "$site/book.html"

# Pages that are made elsewhere lead back to the site.
back='<p style="margin:0 0 1rem;font:0.9rem system-ui,sans-serif"><a href="index.html" style="color:inherit">‹ softback</a></p>'
for page in live report book; do
    [ -f "$site/$page.html" ] || continue
    awk -v back="$back" '!done && sub(/<body[^>]*>/, "&" back) { done = 1 } { print }' "$site/$page.html" >"$work/page.html"
    cp "$work/page.html" "$site/$page.html"
done
