#!/usr/bin/env bash
# Runs every test again and again: on the machine as it is, then with its CPUs and its disk kept busy by others. No
# test may fail, ever: each asserts what holds however slow the machine is. Prints a table of the runs at the end.
#
#   scripts/test-often.sh [RUNS]        number of runs of each kind; default 3
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-3}
work=$(mktemp -d)
file=target/load.tmp
load=()

# Background jobs get a group each, by which they and all they started are ended.
set -m
release() {
    for job in "${load[@]}"; do
        kill -KILL -- "-$job" 2>/dev/null || true
        wait "$job" 2>/dev/null || true
    done
    load=()
    rm -f "$file"
}
trap 'release; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

burn() { while :; do :; done; }

# Writes a file of 1 GiB past the page cache and reads it back, for ever.
shake() {
    while :; do
        dd if=/dev/zero of="$file" bs=1M count=1024 oflag=direct conv=fsync || dd if=/dev/zero of="$file" bs=1M count=1024 conv=fsync
        dd if="$file" of=/dev/null bs=1M iflag=direct || dd if="$file" of=/dev/null bs=1M
    done
}

table=() failed=0
for machine in idle loaded; do
    if [ "$machine" = loaded ]; then
        for _ in $(seq "$(nproc)"); do
            burn &
            load+=($!)
        done
        shake >/dev/null 2>&1 &
        load+=($!)
    fi
    for run in $(seq "$runs"); do
        printf '\n==== run %s of %s, machine %s\n' "$run" "$runs" "$machine"
        began=$SECONDS said=$work/said
        status=0
        scripts/test.sh 2>&1 | tee "$said" || status=${PIPESTATUS[0]}
        [ "$status" != 130 ] || exit 130
        [ "$status" = 0 ] || failed=$((failed + 1))
        table+=("$(printf '%-8s %3s  %5d s   %s' "$machine" "$run" $((SECONDS - began)) "$(tail -n 1 "$said")")")
        while read -r line; do table+=("               $line"); done < <(grep '^failed: ' "$said" || true)
    done
    release
done

printf '\n%-8s %3s  %7s   %s\n' machine run took result
printf '%s\n' "${table[@]}"
if [ "$failed" != 0 ]; then
    printf '%s of %s runs failed\n' "$failed" $((2 * runs))
    exit 1
fi
