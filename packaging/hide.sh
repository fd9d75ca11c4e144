#!/bin/sh
# hide.sh ARCHIVE OBJCOPY COMPILER...: an install script of Meson. It links the objects of the static library
# into one, in which the names that the library does not export are local: a program may define them too.
set -eu
archive=$MESON_INSTALL_DESTDIR_PREFIX/$1
objcopy=$2
shift 2
[ "$(ar t "$archive")" != softback.o ] || exit 0 # done by an earlier installation
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$@" -r -nostdlib -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -o "$work/softback.o"
"$objcopy" --localize-hidden "$work/softback.o"
ar rcsD "$work/archive" "$work/softback.o"
cat "$work/archive" >"$archive"
