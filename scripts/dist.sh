#!/usr/bin/env bash
# Builds one static program that runs on any Linux of an architecture, with musl: dist/rigel-VERSION-ARCH-linux.
# Of another architecture than this machine's it is compiled here and tried under qemu.
#
#     scripts/dist.sh x86_64|aarch64
set -euo pipefail
cd "$(dirname "$0")/.."

arch=$1 target=$1-unknown-linux-musl
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
program=dist/rigel-$version-$arch-linux
try=() compiler=gcc
variable=${target//-/_}
if [ "$arch" != "$(uname -m)" ]; then
	compiler=$arch-linux-gnu-gcc try=("qemu-$arch-static")
	export "CARGO_TARGET_${variable^^}_LINKER=$compiler"
fi
# What is written in C needs no library of C: no compiler of musl's is looked for.
export "CC_$variable=$compiler"
# No file names of the machine that builds are in what is given to others.
remap="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/rigel"
RIGEL_COMMIT=$(git rev-parse HEAD 2>/dev/null || true) RUSTFLAGS="-C target-feature=+crt-static $remap" \
	cargo build --release --locked --target "$target"
install -D -m 755 "target/$target/release/rigel" "$program"
if readelf --program-headers --wide "$program" | grep -q INTERP; then
	echo "$program needs a dynamic loader: it is not static" >&2
	exit 1
fi
"${try[@]}" "$program" --version >/dev/null
(cd dist && sha256sum "${program#dist/}" >"${program#dist/}.sha256")
echo "$program: static, $(stat -c %s "$program" | numfmt --to=iec-i --suffix=B --format=%.2f)"
