#!/usr/bin/env bash
# Installs the packages of scripts/package.sh in roots that have nothing else, runs the program there, and removes
# them again: nothing is left. With names of Debian's releases, also in fresh roots of them, by apt. Needs root.
#
#     scripts/check-packages.sh OUT [SUITE...]
set -euo pipefail
out=$(realpath "$1")
shift
[ "$(id -u)" = 0 ] || {
	echo 'check-packages: only root may install into another root' >&2
	exit 1
}
roots=$(mktemp -d)
trap 'rm -rf "$roots"' EXIT

wrong() {
	echo "check-packages: $*" >&2
	exit 1
}

# The program runs in this root, and knows its commit; that of another architecture runs under qemu.
runs() {
	local root=$1 program=$2 package=$3 emulator=
	case $package in
	*aarch64* | *arm64*) [ "$(uname -m)" = aarch64 ] || emulator=qemu-aarch64-static ;;
	esac
	if [ -n "$emulator" ]; then
		cp "$(command -v "$emulator")" "$root/emulator"
	fi
	chroot "$root" ${emulator:+/emulator} "$program" --version --verbose >"$roots/said" || wrong "$package does not run"
	rm -f "$root/emulator"
	grep -q '^target: .*-linux-musl, static$' "$roots/said" || wrong "$package is not static"
}

# Files that are left below a root, without the package manager's own.
left() { find "$1" -mindepth 1 ! -type d ! -path "$1/var/*"; }

# Debian's rpm warns of itself.
in_root() { rpm --root "$root" --dbpath /var/lib/rpm "$@" 2> >(grep -v '^rpm: \(RPM should\|However\)' >&2); }

(cd "$out" && sha256sum --quiet -c SHA256SUMS)

for package in "$out"/*.tar.gz; do
	rm -rf "$roots/tar" && mkdir "$roots/tar"
	tar -xzf "$package" -C "$roots/tar" --strip-components 1
	runs "$roots/tar" /bin/rigel "$(basename "$package")"
	[ -s "$roots/tar/share/doc/rigel/THIRD-PARTY.md" ] || wrong 'no licences'
	jq -e '.components | length > 100' "$roots/tar/share/doc/rigel/sbom.cdx.json" >/dev/null || wrong 'no parts in the SBOM'
done

for package in "$out"/*.deb; do
	root=$roots/deb && rm -rf "$root"
	mkdir -p "$root/var/lib/dpkg"/{info,updates}
	touch "$root/var/lib/dpkg/status" "$root/var/lib/dpkg/available"
	dpkg --root="$root" --force-architecture --force-script-chrootless -i "$package" >/dev/null 2>"$roots/warned" || wrong "$(cat "$roots/warned")"
	runs "$root" /usr/bin/rigel "$(basename "$package")"
	dpkg --root="$root" -V rigel
	dpkg --root="$root" -P rigel >/dev/null
	[ -z "$(left "$root")" ] || wrong "$(basename "$package") leaves $(left "$root")"
done

for package in "$out"/*.rpm; do
	[ -e "$package" ] || continue
	root=$roots/rpm && rm -rf "$root"
	mkdir "$root"
	in_root --initdb
	in_root --ignorearch -i "$package"
	runs "$root" /usr/bin/rigel "$(basename "$package")"
	in_root -V rigel
	in_root -e rigel
	[ -z "$(left "$root")" ] || wrong "$(basename "$package") leaves $(left "$root")"
done

for package in "$out"/*.oci.tar; do
	image=$roots/image root=$roots/oci
	rm -rf "$image" "$root" && mkdir "$image" "$root"
	tar -xf "$package" -C "$image"
	for blob in "$image"/blobs/sha256/*; do
		[ "$(sha256sum "$blob" | cut -d' ' -f1)" = "$(basename "$blob")" ] || wrong 'a blob has another digest'
	done
	of() { echo "$image/blobs/sha256/${1#sha256:}"; }
	manifest=$(of "$(jq -r '.manifests[0].digest' "$image/index.json")")
	tar -xzf "$(of "$(jq -r '.layers[0].digest' "$manifest")")" -C "$root"
	runs "$root" "$(jq -r '.config.Entrypoint[0]' "$(of "$(jq -r .config.digest "$manifest")")")" "$(basename "$package")"
done
# Files and folders of a root, but for what apt and the kernel keep for themselves.
all() {
	find "$1" -mindepth 1 ! -path "$1/proc*" ! -path "$1/dev*" ! -path "$1/tmp*" ! -path "$1/var/log*" \
		! -path "$1/var/cache*" ! -path "$1/var/lib/apt*" ! -path "$1/var/lib/dpkg*" | sort
}
for suite; do
	root=$roots/$suite package=$(echo "$out"/*_amd64.deb)
	mmdebstrap --quiet --variant=apt --include=ca-certificates "$suite" "$root" || wrong "no root of $suite could be made"
	all "$root" >"$roots/before"
	cp "$package" "$root/tmp/rigel.deb"
	apt() { DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get -qq -o Dpkg::Use-Pty=0 "$@" >/dev/null; }
	apt install -y /tmp/rigel.deb
	runs "$root" rigel "$(basename "$package")"
	mkdir "$root/tmp/run"
	# /proc is there for this command alone.
	unshare --mount sh -ec 'mount -t proc proc "$0/proc"; exec chroot "$0" sh -ec "$1"' "$root" \
		'cd /tmp/run; rigel curve . --scratch-size 64MiB --depth 1 --out run >said 2>&1; orion -help >/dev/null' ||
		wrong "$suite: $(cat "$root/tmp/run/said")"
	chroot "$root" dpkg -V rigel
	apt purge -y rigel
	all "$root" | diff "$roots/before" - || wrong "$(basename "$package") leaves files in $suite"
	echo "check-packages: $suite $(cat "$root/etc/debian_version"): installed by apt, measured, removed without a trace"
done
echo "check-packages: installed, run and removed: $(cd "$out" && ls | grep -vc SHA256SUMS) packages"
