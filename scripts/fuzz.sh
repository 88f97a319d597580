#!/usr/bin/env bash
# Runs each fuzz target of fuzz/, or those that are named, for some seconds, within 1 GiB of memory and 10 s for one
# input: what others wrote may be refused, but may neither end the program nor take its memory or its time. Needs a nightly toolchain and cargo-fuzz.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]        default: 60 s, all targets
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
shift || true
targets=("$@")
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo 'fuzz.sh: cargo-fuzz or the nightly toolchain is missing: cargo install cargo-fuzz --locked' >&2
    exit 1
fi
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' fuzz/Cargo.toml)
fi
for target in "${targets[@]}"; do
    echo "== $target, $seconds s"
    # A target that takes 10 s for one input is as wrong as one that ends.
    cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -rss_limit_mb=1024 -malloc_limit_mb=1024 \
        -timeout=10 -max_len=262144
done
