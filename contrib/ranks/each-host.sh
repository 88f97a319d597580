#!/usr/bin/env bash
# The same verb of Rigel on many hosts by ssh, on each by itself and at the same time: the program is copied there, run,
# and removed again; the runs come back. Needs ssh with keys and nothing on the hosts but a shell. To measure one storage
# from all of them together, see README.md beside this file.
#
#   contrib/ranks/each-host.sh PROGRAM OUT HOST,HOST… VERB [ARGUMENT…]
#   contrib/ranks/each-host.sh dist/rigel-0.1.0-x86_64-linux fleet db1,db2,root@db3 calibrate /var/lib/data --for 30s
#
# OUT gets a run for each host; `rigel compare OUT/db1 OUT/db2` is next. SSH holds other words for ssh: SSH='ssh -p 2222'.
# MOST is the KiB that a host may send [default: a GiB].
# Status 0 if each host had 0, else the worst. Ctrl-C ends all of them, and nothing is left on the hosts.
set -uo pipefail
[ $# -ge 4 ] || {
	sed -n 's/^#   //p' "$0" >&2
	exit 2
}
program=$1 out=$2 hosts=${3//,/ }
shift 3
read -ra ssh <<<"${SSH:-ssh} -o BatchMode=yes"
[ -x "$program" ] || {
	echo "each-host: there is no program '$program': make dist builds a static one" >&2
	exit 2
}
for host in $hosts; do
	[ ! -e "$out/$host" ] || {
		echo "each-host: '$out/$host' is there already: name another folder" >&2
		exit 2
	}
done
mkdir -p "$out"
arguments=$(printf ' %q' "$@")
size=$(stat -c %s "$program")
most=${MOST:-$((1 << 20))} # KiB that a file of one host, and all of them packed, may have
shown=$((64 << 10)) # bytes of what it said that are shown

# What a host said, up to its line of trust, for a terminal: the host may be another's by now. No link, no control
# character but line breaks and tabs, no change of the direction of text.
said() {
	[ -f "$1" ] && [ ! -L "$1" ] || return 0
	head -c "$shown" "$1" | LC_ALL=C tr -d '\000-\010\013-\037\177' |
		LC_ALL=C sed 's/\xc2[\x80-\x9f]//g; s/\xd8\x9c//g; s/\xe2\x80[\x8e\x8f\xaa-\xae]//g; s/\xe2\x81[\xa6-\xa9]//g' |
		sed -n '1,/^Trust:/p'
}

# Waits for a process, also if a signal comes meanwhile, and has its status.
all_of() {
	local status
	while wait "$1"; status=$?; [ "$status" -gt 128 ] && kill -0 "$1" 2>/dev/null; do :; done
	return "$status"
}

# Unpacks what a host sent; no link, device or pipe: a run has none. Of what is not whole nothing is left.
unpacked() {
	local run=$out/$1
	if tar -xf "$run.tar" -C "$run" --strip-components 1 --no-same-owner --no-same-permissions 2>/dev/null; then
		find "$run" ! -type f ! -type d -delete
	else
		rm -rf "$run"
		return 1
	fi
}

# Runs on one host. The program comes by standard input, which then stays open: when it ends, because of a signal here or
# of a connection that is lost, rigel there is told to end, and sends what it has. Its folder there goes in any case.
on() {
	local host=$1 status=0 connection
	ulimit -f "$most"
	exec 3> >("${ssh[@]}" "$host" "set -u; umask 077; there=\$(mktemp -d) || exit 1
		trap 'rm -rf \"\$there\"' EXIT
		head -c $size >\"\$there/rigel\" && chmod 700 \"\$there/rigel\" || exit 1
		exec 3<&0
		\"\$there/rigel\"$arguments --no-progress --out \"\$there/run\" >\"\$there/said\" 2>&1 </dev/null &
		rigel=\$!
		{ cat >/dev/null; kill -INT \$rigel; } <&3 >/dev/null 2>&1 &
		wait \$rigel; status=\$?
		mkdir -p \"\$there/run\" && mv \"\$there/said\" \"\$there/run/said.txt\"
		tar -C \"\$there\" -cf - run; kill \$! 2>/dev/null; exit \$status" >"$out/$host.tar")
	connection=$!
	trap 'exec 3>&-' TERM
	cat "$program" >&3 2>/dev/null
	all_of "$connection" || status=$?
	if mkdir "$out/$host" && unpacked "$host"; then
		printf '== %s: status %s\n%s\n\n' "$host" "$status" "$(said "$out/$host/said.txt")"
	else
		[ "$status" -ne 0 ] || status=1
		printf '== %s: nothing came back, status %s\n\n' "$host" "$status"
	fi
	rm -f "$out/$host.tar"
	return "$status"
}

workers=()
for host in $hosts; do
	on "$host" &
	workers+=($!)
done
trap 'kill "${workers[@]}" 2>/dev/null' INT TERM
worst=0
for worker in "${workers[@]}"; do
	all_of "$worker" || { status=$?; [ "$status" -le "$worst" ] || worst=$status; }
done
exit "$worst"
