#!/usr/bin/env bash
# Installs what a target of the Makefile needs and this machine lacks. Says nothing when all is there.
#
#   scripts/setup.sh build|demo|test|bench|mpi|dist|packages|fresh|site
#
# Debian and Ubuntu are set up by apt-get, with sudo where the user is not root. It says what it installs, and asks
# first at a terminal; Enter means yes. Without a terminal, or with RIGEL_SETUP=yes, it does not ask. RIGEL_SETUP=no
# installs nothing. Elsewhere it names what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

# Where the programs of root and of rustup lie, which a user's PATH may lack.
export PATH="${HOME:-/root}/.cargo/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# The least compiler is written in one place only.
rust_least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

# A command, the package that brings it, and the targets that need it.
needs='
cc            gcc           build demo test bench mpi dist site
make          make          build demo test bench mpi dist
git           git           build demo test bench mpi dist
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
mmdebstrap    mmdebstrap    packages fresh
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

# Nothing is installed that was not said before. Whoever has a terminal is asked.
agree() {
    local answer=yes
    say "missing here, and to be installed: $*"
    case ${RIGEL_SETUP:-} in
        no) stop "RIGEL_SETUP=no: nothing was installed" ;;
        yes) return ;;
        '') ;;
        *) stop "RIGEL_SETUP is '$RIGEL_SETUP': set it to yes or no" ;;
    esac
    if [ "${CI:-}" != true ] && [ -t 0 ] && [ -t 2 ]; then
        read -r -p 'setup: install? [Y/n] ' answer || answer=no
    fi
    case ${answer,,} in
        '' | y | yes) ;;
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
    build | demo | test | bench | mpi | dist | packages | fresh | site) ;;
    *) stop "usage: scripts/setup.sh build|demo|test|bench|mpi|dist|packages|fresh|site" ;;
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

# `cargo fmt` is a proxy that may be there without what it calls.
tools_are_there() { quietly cargo fmt --version && quietly cargo clippy --version; }
postgresql_is_there() { have initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

servers=()
rust=false
case $target in
    demo) postgresql_is_there || servers+=(postgresql) ;;
    test)
        postgresql_is_there || servers+=(postgresql)
        have mariadbd || servers+=(mariadb-server)
        if [ ! -e target/servers/postgresql-18 ] && ! have npm && ! have mvn; then packages+=(npm); fi
        ;;
esac
rust_is_there || rust=true
case $target in
    test | mpi) $rust_tools || $rust || tools_are_there || rust_tools=true ;;
esac
if [ ${#packages[@]} -gt 0 ]; then mapfile -t packages <<<"$(printf '%s\n' "${packages[@]}" | sort -u)"; fi

missing=("${packages[@]}" "${servers[@]}")
if $rust; then missing+=("Rust $rust_least or later (https://rustup.rs)"); fi
if $rust_tools; then missing+=("rustfmt and clippy"); fi
if [ ${#missing[@]} -gt 0 ]; then
    # rustup brings what is Rust without it.
    if [ ${#packages[@]} -gt 0 ] || [ ${#servers[@]} -gt 0 ] || ! have rustup; then
        have apt-get || stop "this is neither Debian nor Ubuntu. Install by hand: $(printf '%s, ' "${missing[@]}" | sed 's/, $//')"
    fi
    agree "$(printf '%s, ' "${missing[@]}" | sed 's/, $//')"
fi

if [ ${#packages[@]} -gt 0 ]; then install_packages "${packages[@]}"; fi
if [ ${#servers[@]} -gt 0 ]; then install_servers "${servers[@]}"; fi
if $rust; then install_rust; fi
rust_is_there || stop "rust is still older than $rust_least: $(rust_version)"
if $rust_tools || { [[ $target = test || $target = mpi ]] && ! tools_are_there; }; then install_rust_tools; fi
if [ "$target" = test ]; then
    # At home the tests that need it are skipped, and say so.
    scripts/postgresql-18.sh || [ "${CI:-}" != true ] || stop "the tests need PostgreSQL 18"
fi
if [ "$target" = dist ]; then
    have rustup || stop "static programs are built with musl, whose standard library rustup brings: https://rustup.rs"
    libraries=()
    for arch in x86_64 aarch64; do
        rustup target list --installed | grep -qx "$arch-unknown-linux-musl" || libraries+=("$arch-unknown-linux-musl")
    done
    if [ ${#libraries[@]} -gt 0 ]; then
        agree "${libraries[*]}, by rustup"
        quietly rustup target add "${libraries[@]}" || stop "rustup could not add ${libraries[*]}"
    fi
fi
# A program of its own: nothing of it is in the build.
mdbook=0.5.4
if [ "$target" = site ] && [ "$(target/tools/bin/mdbook --version 2>/dev/null)" != "mdbook v$mdbook" ]; then
    agree "mdbook $mdbook, in target/tools"
    say "building mdbook $mdbook, two minutes"
    quietly cargo install mdbook --locked --version "$mdbook" --root target/tools || stop "mdbook could not be built"
fi
