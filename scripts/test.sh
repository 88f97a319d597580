#!/usr/bin/env bash
# Builds every test once, with every lint, and runs all of them, whatever fails.
#
#   scripts/test.sh            the tests
#   scripts/test.sh checks     the documentation and its examples as well
#
# Test programs run in lanes at once: those that compute, those that wait for database servers, those that wait for
# devices, hosts that are given up and browsers; the documentation is one, too. What one says is shown whole when it ends.
# The last line is `N passed, N failed, N skipped`; the status is 1 if anything failed.
set -euo pipefail
cd "$(dirname "$0")/.."

# Servers of root's tests run as other users, who must reach what is built and made here. Below a directory that they
# cannot pass, as /root is, the tests run in a mount of their own that ends with them.
if [ "$(id -u)" = 0 ] && ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$PWD/scripts"; then
    unshare --mount true || {
        echo "test: other users, as whom servers are tested, cannot reach $PWD, and nothing can be mounted here: clone elsewhere" >&2
        exit 1
    }
    # shellcheck disable=SC2016
    exec unshare --mount --propagation slave sh -ec 'mount --bind . /mnt; cd /mnt; exec scripts/test.sh "$@"' sh "$@"
fi

# Ctrl-C must reach what the tests start as it would elsewhere: only job control leaves it alone in the background.
set -m
work=$(mktemp -d)
lanes=()
stop() {
    for lane in "${lanes[@]}"; do kill -TERM -- "-$lane" 2>/dev/null || true; done
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM

# The lints come with the compilation: no pass of their own over all crates and dependencies.
compiled() { RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/compile-with-lints.sh cargo test --locked --workspace "$@"; }

# Name and program of every test binary, one a line. Benchmarks are only compiled. A warning is a failure, and stops nothing.
build() {
    compiled --tests --benches --no-run --message-format=json-render-diagnostics 2>&1 >"$work/built" |
        tee "$work/clippy.said" >&2
    ! grep -q '^warning' "$work/clippy.said"
    echo $? >"$work/clippy.status"
    grep -v '"kind":\["bench"\]' "$work/built" |
        sed -n 's/.*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*/\1/p' |
        sed 's/\(.*\/\)\([^/]*\)-\([0-9a-f]*\)$/\2 \1\2-\3/'
}

# Runs a command, keeps what it says, and shows it when it is over: step NAME COMMAND…
step() {
    local name=$1 began=$SECONDS status=0
    shift
    local TIMEFORMAT='%U + %S'
    { time "$@" >"$work/$name.said" 2>&1 </dev/null; } 2>"$work/$name.cpu" || status=$?
    {
        # One lane at a time.
        flock 9
        printf '\n== %s: %d s, of CPU %s s\n' "$name" $((SECONDS - began)) "$(tail -n 1 "$work/$name.cpu")"
        cat "$work/$name.said"
    } 9>"$work/lock"
    echo "$status" >"$work/$name.status"
}

# The test programs of these names, one after the other, each with THREADS tests at a time: run THREADS NAME…
run() {
    export RUST_TEST_THREADS=$1
    local name program
    shift
    for name in "$@"; do
        while read -r program; do step "$name" "$program"; done < <(sed -n "s/^$name //p" "$work/programs")
    done
}

documents() {
    RUSTDOC=$PWD/scripts/document-with-lints.sh step doc compiled --doc --quiet
    # There may be none.
    if grep -rqE "^ *//[/!] *\`\`\`" src crates; then step examples compiled --doc --quiet; fi
}

build >"$work/programs"
if [ "${1:-}" = checks ]; then
    documents &
    lanes+=($!)
fi
cpus=$(nproc)
# The longest programs start first.
run $((2 * cpus)) sql &
lanes+=($!)
run $((4 * cpus)) machine &
lanes+=($!)
run "$cpus" truth page &
lanes+=($!)
run $((2 * cpus)) it &
lanes+=($!)
mapfile -t others < <(cut -d ' ' -f 1 "$work/programs" | sort -u | grep -vxE 'sql|truth|machine|page|it|cli')
run "$cpus" "${others[@]}" &
lanes+=($!)
for lane in "${lanes[@]}"; do wait "$lane" || true; done
lanes=()
# The program says so where something takes longer than a second: its transcripts are those of a machine with time.
run "$cpus" cli

# Every program must have reported how it ended: one that died before that has failed, too.
passed=0 failed=0 skipped=0 failures=()
while read -r name _; do
    [ -e "$work/$name.status" ] || echo 1 >"$work/$name.status"
done <"$work/programs"
for file in "$work"/*.status; do
    name=$(basename "$file" .status)
    said=$work/$name.said
    while read -r test; do failures+=("$name $test"); done < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$said")
    if line=$(grep -a '^test result: ' "$said"); then
        ok=$(sed 's/.* \([0-9]*\) passed;.*/\1/' <<<"$line")
        bad=$(sed 's/.* \([0-9]*\) failed;.*/\1/' <<<"$line")
        # What was skipped passes for the harness. One test may say it more than once.
        out=$(sed -n 's/^skipped: \([a-z0-9_]*\): .*/\1/p' "$said" | sort -u | wc -l)
        passed=$((passed + ok - out)) failed=$((failed + bad)) skipped=$((skipped + out))
        [ "$(cat "$file")" = 0 ] || [ "$bad" != 0 ] || { failed=$((failed + 1)) && failures+=("$name"); }
    elif [ "$(cat "$file")" != 0 ]; then
        failed=$((failed + 1)) && failures+=("$name")
    fi
done
printf '\n'
if [ ${#failures[@]} -gt 0 ]; then printf 'failed: %s\n' "${failures[@]}"; fi
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
