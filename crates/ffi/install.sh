#!/bin/sh
# Builds the C library and installs it: `crates/ffi/install.sh PREFIX`. DESTDIR is put in front, for packages.
# PREFIX/lib: libquietcore.so.0.1.0 with its links, libquietcore.a, pkgconfig/quietcore.pc;
# PREFIX/include: quietcore.h.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 PREFIX" >&2; exit 2; }
prefix=$1
case $prefix in
    /*) ;;
    *) echo "$0: PREFIX is written into quietcore.pc, so it begins with a slash: $prefix" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
target=${CARGO_TARGET_DIR:-$root/target}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -1)
major=${version%%.*}
# Named, so that the place of what is built depends on no configuration.
triple=${CARGO_BUILD_TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
built=$target/$triple/release

build() {
    cargo rustc --release --manifest-path "$root/Cargo.toml" --target-dir "$target" --target "$triple" \
        -p quietcore-ffi --lib --crate-type "$@"
}
build cdylib -- -C link-arg="-Wl,-soname,libquietcore.so.$major"
build staticlib

into=${DESTDIR:-}$prefix
mkdir -p "$into/lib/pkgconfig" "$into/include"
install -m 755 "$built/libquietcore_ffi.so" "$into/lib/libquietcore.so.$version"
ln -sf "libquietcore.so.$version" "$into/lib/libquietcore.so.$major"
ln -sf "libquietcore.so.$major" "$into/lib/libquietcore.so"
install -m 644 "$built/libquietcore_ffi.a" "$into/lib/libquietcore.a"
install -m 644 "$here/include/quietcore.h" "$into/include/quietcore.h"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/quietcore.pc.in" \
    > "$into/lib/pkgconfig/quietcore.pc"
echo "installed quietcore $version below $into"
