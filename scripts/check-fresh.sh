#!/usr/bin/env bash
# Tries the README's first commands as a stranger does: in fresh roots of Debian that have git, make and nothing else,
# as root, in a clone below /root, which only root can pass, and without a terminal. Needs root and mmdebstrap.
#
#     scripts/check-fresh.sh [demo|test]... [SUITE]...     all of it, if nothing is named: half an hour for each suite
#
# What a root said stays in target/fresh/SUITE-demo.log and SUITE-test.log. The roots are removed again.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'check-fresh: %s\n' "$*" >&2; }

targets=() suites=()
for word; do
    case $word in
        demo | test) targets+=("$word") ;;
        *) suites+=("$word") ;;
    esac
done
[ ${#targets[@]} -gt 0 ] || targets=(demo test)
[ ${#suites[@]} -gt 0 ] || suites=(bookworm trixie)
[ "$(id -u)" = 0 ] || {
    say 'only root can make a root of its own'
    exit 1
}
command -v mmdebstrap >/dev/null || {
    say 'there is no mmdebstrap: apt-get install mmdebstrap'
    exit 1
}
logs=$PWD/target/fresh
mkdir -p "$logs"
roots=$(mktemp --directory --tmpdir="$logs")
trap 'rm -rf --one-file-system "$roots"' EXIT
wrong=0
# Of the root, and its clone.
home=/root
clone=$home/rigel

# Runs a command in the clone within a root, without a terminal. What is mounted, and what still runs at the end, goes
# with it. Of the caller's settings only those of a proxy come along.
in_root() {
    local root=$1
    shift
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -ec '
        root=$1
        shift
        # As in a container, the top is a mount.
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --rbind /sys "$root/sys"
        exec chroot "$root" "$@"' sh "$root" \
        /usr/bin/env -i HOME=$home PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
        ${no_proxy:+"no_proxy=$no_proxy"} "$@" </dev/null
}

failed() {
    say "$suite: $*"
    wrong=$((wrong + 1))
}

refuses() {
    local log=$logs/$suite-refused.log packages
    packages=$(in_root "$root" dpkg -l)
    ! in_root "$root" env RIGEL_SETUP=no make -C "$clone" demo >"$log" 2>&1 || failed 'RIGEL_SETUP=no was not a no'
    grep -q 'to be installed: .*postgresql' "$log" || failed "it does not say what is missing: $log"
    [ "$(in_root "$root" dpkg -l)" = "$packages" ] || failed 'RIGEL_SETUP=no installed something'
}

demo() {
    local log=$logs/$suite-demo.log
    in_root "$root" make -C "$clone" demo >"$log" 2>&1 || failed "make demo failed: $log"
    # Both answers, each with a figure.
    grep -A 3 '^The storage' "$log" | grep -q '[0-9]' || failed "the storage was not measured: $log"
    grep -A 3 '^PostgreSQL on it' "$log" | grep -v 'Not measured' | grep -q '[0-9]' || failed "the database was not measured: $log"
    grep -q 'on the same filesystem as' "$log" || failed "it does not say where the server is: $log"
    [ -z "$(find "$root" -xdev -name 'rigel-sql-*')" ] || failed 'the server left something'
}

tests() {
    local log=$logs/$suite-test.log
    in_root "$root" make -C "$clone" test >"$log" 2>&1 || failed "make test failed: $log"
    say "$suite: $(tail -n 1 "$log")"
}

for suite in "${suites[@]}"; do
    root=$roots/$suite
    say "$suite: a fresh root with git and make"
    mmdebstrap --quiet --variant=minbase --include=git,make "$suite" "$root" || {
        failed 'no root could be made'
        continue
    }
    # The network as this machine has it, with the certificates that its owner added.
    cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
    if [ -d /usr/local/share/ca-certificates ]; then
        mkdir -p "$root/usr/local/share"
        cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"
    fi
    chmod 700 "$root$home"
    git clone --quiet --no-hardlinks . "$root$clone"
    for target in "${targets[@]}"; do
        say "$suite: make $target, without a terminal"
        case $target in
            demo) refuses && demo ;;
            test) tests ;;
        esac
    done
    say "$suite: $(cat "$root/etc/debian_version"): done"
    rm -rf --one-file-system "$root"
done
[ "$wrong" = 0 ]
