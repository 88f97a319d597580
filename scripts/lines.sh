#!/usr/bin/env bash
# Counts the product code of each crate: lines of source, and characters of code, which no change of the layout moves.
# Leaves out tests: files tests.rs, folders tests/, and everything below `#[cfg(test)]` with `mod tests`.
#
#   scripts/lines.sh           the total, and each crate
set -euo pipefail
cd "$(dirname "$0")/.."

find src crates/*/src -name '*.rs' ! -name tests.rs ! -path '*/tests/*' -print0 |
    xargs -0 awk '
        FNR == 1 { tests = 0; pending = 0; crate = FILENAME ~ /^crates/ ? FILENAME : "crates/rigel/"; split(crate, parts, "/"); crate = parts[2] }
        tests { next }
        pending { pending = 0; if ($0 ~ /^(pub(\([a-z: ]*\))? )?mod tests/) { tests = 1; lines[crate]--; next } }
        /^#\[cfg\(test\)\]$/ { pending = 1 }
        { lines[crate]++ }
        !/^ *\/\// { code = $0; gsub(/ /, "", code); characters[crate] += length(code) }
        END {
            for (name in lines) { total += lines[name]; all += characters[name] }
            printf "%-10s %8s %11s\n", "crate", "lines", "characters"
            printf "%-10s %8d %11d\n", "total", total, all
            for (name in lines) printf "%-10s %8d %11d\n", name, lines[name], characters[name] | "sort -k2,2nr"
        }'
