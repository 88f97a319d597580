#!/usr/bin/env bash
# The demonstration: what the storage of a directory can do, and what a database gets out of it.
#
#   scripts/demo.sh PROGRAM TARGET OUT
#
# It ends with a result wherever it is run. On a small disk the files are smaller, and it says so; on a full one it
# measures a model of a device.
set -euo pipefail
program=$1 target=$2 out=$3
stamp=$(date +%Y%m%d_%H%M%S)

say() { printf 'demo: %s\n' "$*" >&2; }

free_mib=$(df --output=avail --block-size=1M -- "$target" | tail -n 1)
measured=$target
# The smallest scratch file is 64 MiB, and it takes a quarter of the free space at most.
if [ -d "$target" ] && [ "$free_mib" -lt 256 ]; then
    say "only $free_mib MiB are free in '$target', too few for a scratch file: a model of a device is measured instead"
    measured=sim:8,100us
fi
"$program" calibrate "$measured" --out "$out/calibrate_$stamp"
"$program" advise "$out/calibrate_$stamp" --for postgres

# What a table of this size needs, with its index, its log and the server: see `rigel sql run`.
if [ "$free_mib" -ge 2048 ]; then
    scale=1GiB
elif [ "$free_mib" -ge 1024 ]; then
    scale=256MiB
    say "only $free_mib MiB are free in '$target': the database's table has $scale instead of 1 GiB"
else
    say "only $free_mib MiB are free in '$target', too few for a database: the demonstration ends here"
    exit 0
fi
# Where the user of the server cannot reach this folder, rigel says so; the rest of the demonstration stands.
"$program" sql run --on "$target" --scale "$scale" --run-time 15s --out "$out/sql_$stamp" ||
    say "without the database, for the reason above"
