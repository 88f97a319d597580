#!/usr/bin/env bash
# Counts the lines of src/ without tests: no file tests.rs, golden.rs or tests/*, and no line below `#[cfg(test)] mod tests`.
#
#   scripts/lines.sh           total, and each module of src/
set -euo pipefail
cd "$(dirname "$0")/.."

find src -name '*.rs' ! -name tests.rs ! -name golden.rs ! -path '*/tests/*' -print0 |
    xargs -0 awk '
        FNR == 1 { tests = 0; pending = 0 }
        tests { next }
        pending { if ($0 ~ /^mod tests/) { tests = 1; lines[module(FILENAME)]--; total--; pending = 0; next } pending = 0 }
        /^#\[cfg\(test\)\]$/ { pending = 1 }
        { lines[module(FILENAME)]++; total++ }
        function module(path, parts) { split(path, parts, "/"); return parts[2] }
        END { print total, "src"; for (name in lines) print lines[name], name }' | sort -rn
