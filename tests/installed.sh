# Sourced by scripts that use the installed library: installs the build folder $build below $work/root,
# where pkg-config, the compiler and programs find it.
meson install -C "$build" --destdir "$work/root" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
package=$(find "$work/root" -name softback.pc)
export PKG_CONFIG_PATH="${package%/*}" PKG_CONFIG_SYSROOT_DIR="$work/root"
LD_LIBRARY_PATH=$work/root$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --variable=libdir softback)
export LD_LIBRARY_PATH
unset OPENBLAS_CORETYPE
