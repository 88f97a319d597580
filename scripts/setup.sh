#!/usr/bin/env bash
# Installs what a target of the Makefile needs and this machine lacks. Says nothing when all is there.
#
#   scripts/setup.sh build|test|bench|server|mpi|dist|packages|site
#
# Debian and Ubuntu are set up by apt-get, with sudo where the user is not root. It says what it would install, and asks
# at a terminal; CI=true agrees to everything. Elsewhere it names what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

# Where the programs of root and of rustup lie, which a user's PATH may lack.
export PATH="${HOME:-/root}/.cargo/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# The least compiler is written in one place only.
rust_least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

# A command, the package that brings it, and the targets that need it.
needs='
cc            gcc           build test bench mpi dist site
make          make          build test bench mpi dist
git           git           build test bench mpi dist
readelf       binutils      dist
rustfmt       RUST          test
cargo-clippy  RUST          test mpi
fio           fio           test bench
mkfs.ext4     e2fsprogs     test
mkfs.xfs      xfsprogs      test
mkfs.btrfs    btrfs-progs   test
mkfs.vfat     dosfstools    test
mkfs.exfat    exfatprogs    test
mkfs.f2fs     f2fs-tools    test
pvcreate      lvm2          test
sfdisk        fdisk         test
setcap        libcap2-bin   test
losetup       mount         test
mkswap        util-linux    test
setpriv       util-linux    test
script        bsdutils      test
xz            xz-utils      test
chromium      chromium      test
mpiexec.hydra mpich         test mpi
mpicc         libmpich-dev  mpi
ip            iproute2      test mpi
taskset       util-linux    bench
aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu dist
qemu-aarch64-static qemu-user-static dist
jq            jq            packages
rpmbuild      rpm           packages
mmdebstrap    mmdebstrap    packages
dpkg-deb      dpkg          packages
'

say() { printf 'setup: %s\n' "$*" >&2; }

stop() {
    say "$@"
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# True if version $1 is at least $2.
at_least() { [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif ! have sudo; then
        stop "not root, and there is no sudo. Run as root: scripts/setup.sh $target"
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo -n "$@" || stop "sudo refused: $*. Run in a terminal: scripts/setup.sh $target"
    fi
}

# Runs quietly; where it fails, what it said is shown.
quietly() {
    local log
    log=$(mktemp)
    if ! "$@" >"$log" 2>&1 </dev/null; then
        tail -n 30 "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}

# Nothing is installed unasked: somebody at a terminal agrees, or CI=true does.
agreed_to=
agreed() {
    local answer
    if [ "${CI:-}" = true ] || [ "$agreed_to" = "$*" ]; then return; fi
    say "this would install, by apt-get as root: $*"
    if [ ! -t 0 ] || [ ! -t 2 ]; then
        stop "nobody is here to agree. In a terminal: scripts/setup.sh $target; without one: CI=true scripts/setup.sh $target"
    fi
    read -r -p 'setup: install? [y/N] ' answer
    case $answer in
        y | Y | yes) agreed_to="$*" ;;
        *) stop "nothing was installed" ;;
    esac
}

updated=false
update_lists() {
    have apt-get || stop "this is neither Debian nor Ubuntu. Install by hand: $*"
    if ! $updated; then
        say "reading the lists of packages"
        # Where sudo asks for a password, it must not ask quietly.
        as_root true
        quietly as_root apt-get update -q || stop "apt-get update failed"
        updated=true
    fi
}

install_packages() {
    agreed "$@"
    update_lists "$@"
    say "installing $*"
    quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" ||
        stop "apt-get could not install: $*"
}

# Database servers are tested as private ones in target/. That of the system is not wanted: it is not started, nor at
# the next boot, and PostgreSQL's is not even made. One that is there already is left as it is.
install_servers() {
    local policy=/usr/sbin/policy-rc.d common=/etc/postgresql-common/createcluster.conf made=false status=0
    local setting='create_main_cluster = false' set=false
    agreed "$@"
    if [ ! -e "$common" ]; then
        as_root mkdir -p "${common%/*}"
        as_root sh -c "echo '$setting' >$common"
        set=true
    fi
    # Packages ask this program whether they may start what they bring.
    if [ ! -e "$policy" ]; then
        as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy"
        made=true
    fi
    (install_packages "$@") || status=$?
    if $made; then as_root rm -f "$policy"; fi
    # The package keeps a file that it meets. Whoever wants a cluster later gets one, by the package's own settings.
    if $set && [ "$(cat "$common")" = "$setting" ]; then
        as_root cp /usr/share/postgresql-common/createcluster.conf "$common" 2>/dev/null || as_root rm -f "$common"
    fi
    [ "$status" = 0 ] || exit "$status"
    case " $* " in
        *" mariadb-server "*) if [ -d /run/systemd/system ]; then quietly as_root systemctl disable mariadb || true; fi ;;
    esac
}

# The version that apt-get would install, without what Debian adds to it; empty if it has none.
candidate() {
    apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *\([0-9][0-9.]*\).*/\1/p'
}

rust_version() { rustc --version 2>/dev/null | sed 's/^rustc \([0-9.]*\).*/\1/'; }

rust_is_there() { have cargo && have rustc && at_least "$(rust_version)" "$rust_least"; }

install_rust() {
    local package version
    if have rustup; then
        say "rustup: installing the stable toolchain"
        quietly rustup toolchain install stable --profile minimal && quietly rustup default stable ||
            stop "rustup could not install a toolchain"
        return
    fi
    agreed "a compiler of rust $rust_least or later"
    update_lists "rust $rust_least or later, from https://rustup.rs"
    # Debian's security updates carry a recent compiler, made for browsers, as cargo-web.
    for package in cargo cargo-web; do
        version=$(candidate "$package")
        if [ -n "$version" ] && at_least "$version" "$rust_least"; then
            install_packages "$package" "${package/cargo/rustc}"
            return
        fi
    done
    if [ -n "$(candidate rustup)" ]; then
        install_packages rustup ca-certificates
        install_rust
        return
    fi
    stop "no package has rust $rust_least or later. Run this, then make again:" \
        "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal"
}

# rustfmt and clippy of the compiler that is there.
install_rust_tools() {
    if have rustup; then
        say "rustup: adding rustfmt and clippy"
        quietly rustup component add rustfmt clippy || stop "rustup could not add rustfmt and clippy"
    elif dpkg -s rustc-web >/dev/null 2>&1; then
        install_packages rustfmt-web rust-web-clippy
    else
        install_packages rustfmt rust-clippy
    fi
}

target=${1:-}
case $target in
    build | test | bench | server | mpi | dist | packages | site) ;;
    *) stop "usage: scripts/setup.sh build|test|bench|server|mpi|dist|packages|site" ;;
esac

packages=()
rust_tools=false
while read -r command package targets; do
    case " $targets " in
        *" $target "*) have "$command" || if [ "$package" = RUST ]; then rust_tools=true; else packages+=("$package"); fi ;;
    esac
done <<<"${needs#?}"

# gcc alone finds no headers and no static libc.
[ -e /usr/include/stdio.h ] || packages+=(libc6-dev)
if [ "$target" = dist ] && [ ! -e /usr/aarch64-linux-gnu/include/stdio.h ]; then packages+=(libc6-dev-arm64-cross); fi
# A library without a program of its own, with which the headers of MPI are read.
if [ "$target" = mpi ] && ! compgen -G '/usr/lib/llvm-*/lib/libclang[.-][s0-9]*' >/dev/null; then packages+=(libclang-dev); fi
# Where mpich only runs programs, its mpicc is there and the header is not.
if [ "$target" = mpi ] && ! echo '#include <mpi.h>' | mpicc -E - >/dev/null 2>&1; then packages+=(libmpich-dev); fi
# Without it cargo trusts nobody.
[ -e /etc/ssl/certs/ca-certificates.crt ] || packages+=(ca-certificates)

# Ubuntu's package is a shell around a snap, which may not read the build's folder.
if [[ " ${packages[*]} " == *" chromium "* ]] && grep -qs '^ID=ubuntu' /etc/os-release; then
    kept=()
    for package in "${packages[@]}"; do [ "$package" = chromium ] || kept+=("$package"); done
    packages=("${kept[@]}")
    say "chromium is a snap here, and is not installed: tests of the HTML page need a chromium on the PATH"
fi

if [ ${#packages[@]} -gt 0 ]; then
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
    install_packages "${packages[@]}"
fi
if [ "$target" = server ]; then
    have initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || install_servers postgresql
    exit 0
fi
if [ "$target" = test ]; then
    servers=()
    have initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || servers+=(postgresql)
    have mariadbd || servers+=(mariadb-server)
    if [ ${#servers[@]} -gt 0 ]; then install_servers "${servers[@]}"; fi
    if [ ! -e target/servers/postgresql-18 ] && ! have npm && ! have mvn; then install_packages npm; fi
    # At home the tests that need it are skipped, and say so.
    scripts/postgresql-18.sh || [ "${CI:-}" != true ] || stop "the tests need PostgreSQL 18"
fi
rust_is_there || install_rust
rust_is_there || stop "rust is still older than $rust_least: $(rust_version)"
# `cargo fmt` is a proxy that may be there without what it calls.
tools_are_there() { quietly cargo fmt --version && quietly cargo clippy --version; }
if [[ "$target" = test || "$target" = mpi ]] && { $rust_tools || ! tools_are_there; }; then
    install_rust_tools
fi
if [ "$target" = dist ]; then
    have rustup || stop "static programs are built with musl, whose standard library rustup brings: https://rustup.rs"
    for arch in x86_64 aarch64; do
        quietly rustup target add "$arch-unknown-linux-musl" || stop "rustup could not add $arch-unknown-linux-musl"
    done
fi
# A program of its own: nothing of it is in the build.
mdbook=0.5.4
if [ "$target" = site ] && [ "$(target/tools/bin/mdbook --version 2>/dev/null)" != "mdbook v$mdbook" ]; then
    say "building mdbook $mdbook, two minutes"
    quietly cargo install mdbook --locked --version "$mdbook" --root target/tools || stop "mdbook could not be built"
fi
