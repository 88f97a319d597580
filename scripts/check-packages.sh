#!/usr/bin/env bash
# Installs the packages of scripts/package.sh in roots that have nothing else, runs the program there, and removes
# them again: nothing is left. Needs root.
#
#     scripts/check-packages.sh OUT
set -euo pipefail
out=$(realpath "$1")
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

# The program runs in this root, and knows its commit.
runs() {
	chroot "$1" "${2:-/usr/bin/rigel}" --version --verbose >"$roots/said" || wrong "$3 does not run"
	grep -q '^target: .*, static$' "$roots/said" || wrong "$3 is not static"
}

# Files that are left below a root, without the package manager's own.
left() { find "$1" -mindepth 1 ! -type d ! -path "$1/var/*"; }

# Debian's rpm warns of itself.
in_root() { rpm --root "$root" --dbpath /var/lib/rpm "$@" 2> >(grep -v '^rpm: \(RPM should\|However\)' >&2); }

(cd "$out" && sha256sum --quiet -c SHA256SUMS)

for package in "$out"/*.tar.gz; do
	mkdir "$roots/tar"
	tar -xzf "$package" -C "$roots/tar" --strip-components 1
	runs "$roots/tar" /bin/rigel "$(basename "$package")"
	[ -s "$roots/tar/share/doc/rigel/THIRD-PARTY.md" ] || wrong 'no licences'
	jq -e '.components | length > 100' "$roots/tar/share/doc/rigel/sbom.cdx.json" >/dev/null || wrong 'no parts in the SBOM'
done

for package in "$out"/*.deb; do
	root=$roots/deb
	mkdir -p "$root/var/lib/dpkg"/{info,updates}
	touch "$root/var/lib/dpkg/status" "$root/var/lib/dpkg/available"
	dpkg --root="$root" --force-script-chrootless -i "$package" >/dev/null
	runs "$root" /usr/bin/rigel "$(basename "$package")"
	dpkg --root="$root" -V rigel
	dpkg --root="$root" -P rigel >/dev/null
	[ -z "$(left "$root")" ] || wrong "$(basename "$package") leaves $(left "$root")"
done

for package in "$out"/*.rpm; do
	[ -e "$package" ] || continue
	root=$roots/rpm
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
	mkdir "$image" "$root"
	tar -xf "$package" -C "$image"
	for blob in "$image"/blobs/sha256/*; do
		[ "$(sha256sum "$blob" | cut -d' ' -f1)" = "$(basename "$blob")" ] || wrong 'a blob has another digest'
	done
	of() { echo "$image/blobs/sha256/${1#sha256:}"; }
	manifest=$(of "$(jq -r '.manifests[0].digest' "$image/index.json")")
	tar -xzf "$(of "$(jq -r '.layers[0].digest' "$manifest")")" -C "$root"
	runs "$root" "$(jq -r '.config.Entrypoint[0]' "$(of "$(jq -r .config.digest "$manifest")")")" "$(basename "$package")"
done
echo "check-packages: installed, run and removed: $(cd "$out" && ls | grep -vc SHA256SUMS) packages"
