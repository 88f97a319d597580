#!/usr/bin/env bash
# Makes packages of a static program: a tarball, a .deb, a .rpm and an OCI image, with manual pages, completions, the
# licences of all parts and a list of them (SBOM). Two builds of one commit give the same bytes.
#
#     scripts/package.sh x86_64|aarch64 OUT
#
# The program is that of scripts/dist.sh. OUT: a folder, made if it is not there.
set -euo pipefail
cd "$(dirname "$0")/.."

arch=$1 target=$1-unknown-linux-musl
mkdir -p "$2"
out=$(realpath "$2")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=rigel-$version-$arch-linux
program=$(realpath "dist/$name")
run=("$program")
[ "$arch" = "$(uname -m)" ] || run=("qemu-$arch-static" "$program")
about='Tells what a storage platform will do for a database, and proves it'
# The time of everything in a package: that of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What is in every package, below /usr.
tree=$work/tree
doc=$tree/usr/share/doc/rigel
mkdir -p "$tree"/usr/{bin,lib/systemd/system} "$tree"/usr/share/{man/man1,bash-completion/completions} \
	"$tree"/usr/share/{zsh/vendor-completions,fish/vendor_completions.d} "$doc"
install -m 755 "$program" "$tree/usr/bin/rigel"
ln -s rigel "$tree/usr/bin/orion"
"${run[@]}" man "$tree/usr/share/man/man1" >/dev/null
gzip -9n "$tree"/usr/share/man/man1/*
"${run[@]}" completions bash >"$tree/usr/share/bash-completion/completions/rigel"
"${run[@]}" completions zsh >"$tree/usr/share/zsh/vendor-completions/_rigel"
"${run[@]}" completions fish >"$tree/usr/share/fish/vendor_completions.d/rigel.fish"
for unit in contrib/systemd/*.service; do
	sed 's|/usr/local/bin/|/usr/bin/|g' "$unit" >"$tree/usr/lib/systemd/system/$(basename "$unit")"
done
install -m 644 README.md CHANGELOG.md SECURITY.md "$doc"
install -m 644 LICENSE "$doc/copyright"

# The parts that are linked in: those of the release build for this target, and not tools that build it.
cargo metadata --locked --format-version 1 --filter-platform "$target" >"$work/metadata.json"
cargo tree --locked --edges normal --target "$target" --prefix none --format '{p}' | sed 's/ (.*//' | sort -u |
	grep -v '^rigel\|^$' >"$work/parts"
jq -r '.packages[] | [.name, "v" + .version, .license // "see its text", .repository // "-", (.manifest_path | rtrimstr("/Cargo.toml"))] | @tsv' \
	"$work/metadata.json" | awk -F'\t' 'NR == FNR { wanted[$0]; next } ($1 " " $2) in wanted' "$work/parts" - |
	sort >"$work/parts.tsv"
[ "$(wc -l <"$work/parts")" = "$(wc -l <"$work/parts.tsv")" ] || {
	echo 'package: a part of the program has no licence in the list' >&2
	exit 1
}
{
	echo '# Licences of the parts of the program'
	echo
	echo "Linked into rigel $version for $target, beside the standard library of Rust (MIT or Apache-2.0) and musl (MIT)."
	echo
	echo '| part | version | licence | source |'
	echo '|---|---|---|---|'
	awk -F'\t' '{ print "| " $1 " | " substr($2, 2) " | " $3 " | " $4 " |" }' "$work/parts.tsv"
	while IFS=$'\t' read -r part number _ _ place; do
		find "$place" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) | sort |
			while read -r text; do
				printf '\n## %s %s, %s\n\n```\n' "$part" "${number#v}" "$(basename "$text")"
				cat "$text"
				printf '\n```\n'
			done
	done <"$work/parts.tsv"
} >"$doc/THIRD-PARTY.md"
jq -n --arg version "$version" --rawfile parts "$work/parts.tsv" --arg time "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)" '{
	bomFormat: "CycloneDX", specVersion: "1.5", version: 1,
	metadata: { timestamp: $time, component: { type: "application", name: "rigel", version: $version } },
	components: [ $parts | split("\n")[] | select(. != "") | split("\t") | {
		type: "library", name: .[0], version: .[1][1:], purl: "pkg:cargo/\(.[0])@\(.[1][1:])",
		licenses: [ if .[2] == "see its text" then { license: { name: .[2] } }
			else { expression: (.[2] | gsub("/"; " OR ")) } end ]
	} ] }' >"$doc/sbom.cdx.json"

packed() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=ustar "$@"; }

# The tarball: the same files below one folder, as `make install` would lay them out.
mv "$tree/usr" "$work/$name"
packed -C "$work" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
mv "$work/$name" "$tree/usr"

case $arch in
x86_64) debian=amd64 image=amd64 ;;
aarch64) debian=arm64 image=arm64 ;;
esac

mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<-CONTROL
	Package: rigel
	Version: $version-1
	Architecture: $debian
	Maintainer: The authors of Rigel <rigel@localhost>
	Installed-Size: $(du -sk --apparent-size "$tree/usr" | cut -f1)
	Section: admin
	Priority: optional
	Description: $about
	 One static program without dependencies. It measures storage alone or through a
	 database, on one host or several, and keeps a journal of all that it measured.
CONTROL
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
(cd "$tree" && find usr -type f -exec md5sum {} + | sort -k2 >DEBIAN/md5sums)
dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/rigel_$version-1_$debian.deb" >/dev/null
rm -r "$tree/DEBIAN"

if command -v rpmbuild >/dev/null; then
	cat >"$work/rigel.spec" <<-SPEC
		Name: rigel
		Version: $version
		Release: 1
		Summary: $about
		License: Apache-2.0
		AutoReqProv: no
		%description
		One static program without dependencies. It measures storage alone or through a
		database, on one host or several, and keeps a journal of all that it measured.
		%install
		cp -a $tree/usr %{buildroot}/
		mv %{buildroot}/usr/share/zsh/vendor-completions %{buildroot}/usr/share/zsh/site-functions
		%files
		/usr/bin/*
		/usr/lib/systemd/system/*
		/usr/share/bash-completion/completions/*
		/usr/share/fish/vendor_completions.d/*
		/usr/share/zsh/site-functions/*
		/usr/share/man/man1/*
		%dir /usr/share/doc/rigel
		/usr/share/doc/rigel/*
	SPEC
	rpmbuild -bb --quiet --target "$arch-linux" --define "_topdir $work/rpm" --define "_rpmdir $out" \
		--define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' --define '_buildhost rigel' \
		--define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' \
		--define '__os_install_post %{nil}' --define 'debug_package %{nil}' "$work/rigel.spec" >/dev/null
else
	echo 'package: no .rpm, as there is no rpmbuild' >&2
fi

# An image with the program and nothing else: no shell, no library.
mkdir -p "$work/layer/usr/bin" "$work/image/blobs/sha256"
install -m 755 "$program" "$work/layer/usr/bin/rigel"
packed -C "$work/layer" -cf "$work/layer.tar" usr
sum() { sha256sum "$1" | cut -d' ' -f1; }
# Adds a file as a blob, and prints its descriptor.
blob() {
	cp "$1" "$work/image/blobs/sha256/$(sum "$1")"
	jq -n --arg type "$2" --arg digest "sha256:$(sum "$1")" --argjson size "$(stat -c %s "$1")" \
		'{ mediaType: $type, digest: $digest, size: $size }'
}
diff=sha256:$(sum "$work/layer.tar")
gzip -9n "$work/layer.tar"
jq -n --arg arch "$image" --arg diff "$diff" --arg time "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)" '{
	created: $time, architecture: $arch, os: "linux",
	config: { Entrypoint: ["/usr/bin/rigel"], Cmd: ["--help"] },
	rootfs: { type: "layers", diff_ids: [$diff] } }' >"$work/config.json"
layer=$(blob "$work/layer.tar.gz" application/vnd.oci.image.layer.v1.tar+gzip)
config=$(blob "$work/config.json" application/vnd.oci.image.config.v1+json)
jq -n --argjson config "$config" --argjson layer "$layer" '{
	schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json",
	config: $config, layers: [$layer] }' >"$work/manifest.json"
manifest=$(blob "$work/manifest.json" application/vnd.oci.image.manifest.v1+json)
jq -n --argjson manifest "$manifest" --arg tag "rigel:$version" '{
	schemaVersion: 2, manifests: [ $manifest + { annotations: { "org.opencontainers.image.ref.name": $tag } } ] }' \
	>"$work/image/index.json"
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/image/oci-layout"
packed -C "$work/image" -cf "$out/$name.oci.tar" .

(cd "$out" && sha256sum $(ls | grep -v SHA256SUMS) >SHA256SUMS)
(cd "$out" && ls -l --block-size=1 | awk 'NR > 1 { print "package: " $NF ", " $5 " bytes" }')
