#!/usr/bin/env bash
# The demonstration: what the storage of a directory can do, and what a database gets out of it.
#
#   scripts/demo.sh PROGRAM TARGET OUT
#
# It says beforehand what it measures, how long that takes and where the results go, and ends with both answers on one
# screen. It ends with a result wherever it is run: on a small disk the files are smaller, and it says so; on a full one
# it measures a model of a device.
set -euo pipefail
program=$1 target=$2 out=$3
stamp=$(date +%Y%m%d_%H%M%S)
storage=$out/calibrate_$stamp database=$out/sql_$stamp

say() { printf 'demo: %s\n' "$*" >&2; }

stop() {
    say "$@"
    exit 1
}

# The answer and the line of trust of a report: its second paragraph, and the line that begins with Trust.
answer() { awk 'BEGIN { RS = ""; FS = "\n" } NR == 2 { print } { for (at = 1; at <= NF; at++) if ($at ~ /^Trust: /) print $at }' "$1"; }

[ -d "$target" ] || [ -b "$target" ] || [ -f "$target" ] || stop "'$target' is no directory, file or device: give one by DEMO_TARGET"
mkdir -p "$out" && [ -w "$out" ] || stop "cannot write to '$out': give another directory by DEMO_OUT"

# What a table of this size needs, with its index, its log and the server: see `rigel sql run`.
free_mib=$(df --output=avail --block-size=1M -- "$target" | tail -n 1 | tr -d ' ')
without='' scale=1GiB measured=$target lasts='about 90 seconds'
if [ ! -d "$target" ]; then
    without="'$target' is no directory for a server"
elif [ "$free_mib" -lt 1024 ]; then
    without="only $free_mib MiB are free in '$target'"
elif [ "$free_mib" -lt 2048 ]; then
    scale=256MiB
fi
# The smallest scratch file is 64 MiB, and it takes a quarter of the free space at most.
if [ -d "$target" ] && [ "$free_mib" -lt 256 ]; then
    measured=sim:8,100us lasts='some seconds'
    say "only $free_mib MiB are free in '$target', too few for a scratch file: a model of a device is measured instead"
fi

say "1. what the storage of '$target' can do: $lasts, results in $storage"
if [ -z "$without" ]; then
    say "2. what PostgreSQL with a table of $scale on it gets: half a minute, results in $database"
else
    say "2. no database: $without"
fi

"$program" calibrate "$measured" --for 60s --out "$storage" >"$storage.txt" ||
    stop "the storage was not measured, for the reason above"
"$program" advise "$storage" --for postgres >"$out/advice_$stamp.txt"
if [ -z "$without" ]; then
    # Where the user of the server cannot reach this folder, rigel says so; the rest of the demonstration stands.
    "$program" sql run --on "$target" --scale "$scale" --run-time 10s --out "$database" >"$database.txt" ||
        without='see the reason above'
fi

printf '\nThe storage, %s:\n' "$measured"
answer "$storage.txt"
printf 'Page: %s/report.html\n' "$storage"
printf '\nPostgreSQL on it:\n'
if [ -z "$without" ]; then
    answer "$database.txt"
    printf 'Page: %s/report.html\n' "$database"
else
    printf 'Not measured: %s.\n' "$without"
fi
printf "\nSettings of PostgreSQL for this storage: %s\n" "$out/advice_$stamp.txt"
