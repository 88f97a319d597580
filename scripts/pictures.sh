#!/usr/bin/env bash
# Makes the pictures of docs/pictures/ again: runs on models of devices, their pages, and what Chromium shows of them.
#
#   scripts/pictures.sh        after `make build`; needs chromium
set -euo pipefail
cd "$(dirname "$0")/.."

rigel=${RIGEL:-$PWD/target/release/rigel}
root=$PWD
out=$root/docs/pictures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The user of a private database must reach it.
chmod 755 "$work"
cd "$work"

# name, width, height, scheme (light or dark), and the section that is shown, if it is not the beginning.
shoot() {
    local dark=()
    [ "$4" = dark ] && dark=(--blink-settings=preferredColorScheme=0)
    chromium --headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars \
        --disable-background-networking --disable-component-update --disable-sync --user-data-dir="$work/profile" \
        --virtual-time-budget=3000 --force-device-scale-factor=1 --window-size="$2,$3" "${dark[@]}" \
        --screenshot="$out/$1.png" "file://$work/${5:-$1/report.html}" >/dev/null 2>&1
    printf '%s: %s\n' "$out/$1.png" "$(stat -c %s "$out/$1.png" | numfmt --to=iec)"
}

measure() { "$rigel" "$@" --no-progress >/dev/null 2>&1 || [ $? = 3 ]; }

device=sim:8,100us
measure calibrate "$device" --seed 1 --out calibrate
measure orion -run normal -num_disks 2 -duration 2 --seed 1 --target "$device" --out orion
measure curve "$device" --rate 10%..120% --seed 1 --max-latency 1ms --out curve
measure soak sim:8,100us,slow=5ms@0.5% --work 100kops --every 15m --for 7d --slo 'p99<1ms' --seed 1 --out soak
"$rigel" import "$root/docs/examples/cloud-day.csv" --out cloud-day >/dev/null
"$rigel" report cloud-day --html >/dev/null 2>&1

# A database on the current disk; where no PostgreSQL is installed its picture stays as it is.
newest=$root/target/servers/postgresql-18/bin
server=()
[ ! -x "$newest/postgres" ] || server=(--server-bin "$newest")
measure sql run --on . "${server[@]}" --scale 256MiB -t 8 --run-time 10s --update 10% --out sql || echo "no picture of sql: no server" >&2

shoot calibrate 1280 1000 light
shoot orion 1280 1000 light
shoot curve 1280 1000 dark
shoot soak 1280 1000 light
[ ! -e sql/report.html ] || shoot sql 1280 1300 light
shoot cloud-day 1280 1000 light
