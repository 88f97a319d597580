#!/usr/bin/env bash
# Commits per second of a private PostgreSQL (pgbench -N) and of a private MariaDB (one insert each), beside what
# rigel curve --log reused measures on the same filesystem, in turn; with 1, 4 and 16 clients.
#
#     scripts/bench-commits.sh PROGRAM DIR [ROUNDS] [SECONDS] [DELAY_US]
#
# With DELAY_US each fdatasync of all three takes as much longer, by a library that is loaded first: then the storage
# decides and not the CPUs. Output: a table in Markdown with medians, and Rigel's figure over the database's.
set -euo pipefail

program=$(realpath "$1")
place=$(realpath "$2")/commits-$$
rounds=${3:-3} seconds=${4:-5} delay=${5:-0}
clients='1 4 16'
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
mkdir -m 755 "$place"
figures=$place/figures

end() {
	"$bin/pg_ctl" --version >/dev/null && as postgres "$bin/pg_ctl" -D "$place/postgres" -m immediate stop >/dev/null 2>&1
	mariadb-admin -uroot -S "$place/mysql.s" shutdown >/dev/null 2>&1
	rm -rf "$place"
}
trap 'end || true' EXIT

# Servers refuse to run as root.
as() {
	local user=$1
	shift
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid="$user" --regid="$user" --clear-groups "$@"
	else
		"$@"
	fi
}

slow=
if [ "$delay" -gt 0 ]; then
	slow=$place/slow.so
	cc -shared -fPIC -o "$slow" -xc - <<-CODE
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <unistd.h>
		int fdatasync(int file) {
			static int (*real)(int);
			if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
			usleep($delay);
			return real(file);
		}
	CODE
fi

for user in postgres mysql; do
	mkdir "$place/$user"
	[ "$(id -u)" != 0 ] || chown "$user" "$place/$user"
done
export PGHOST=$place/postgres PGDATABASE=postgres PGUSER=postgres

as postgres "$bin/initdb" -D "$place/postgres" -U postgres -A trust --no-sync >/dev/null
as postgres env LD_PRELOAD="$slow" "$bin/pg_ctl" -w -D "$place/postgres" -l "$place/postgres/log" -o "-k $place/postgres \
	-c listen_addresses= -c shared_buffers=512MB -c max_wal_size=4GB -c checkpoint_timeout=1h -c autovacuum=off" start >/dev/null
"$bin/pgbench" -i -q -s 5 >/dev/null 2>&1

as mysql mariadb-install-db --no-defaults --datadir="$place/mysql" --auth-root-authentication-method=normal >/dev/null 2>&1
as mysql env LD_PRELOAD="$slow" mariadbd --no-defaults --datadir="$place/mysql" --socket="$place/mysql/s" \
	--pid-file="$place/mysql/pid" --skip-networking --innodb-buffer-pool-size=512M --innodb-log-file-size=512M \
	--skip-log-bin >"$place/mysql/log" 2>&1 &
ln -s "$place/mysql/s" "$place/mysql.s"
asked() { mariadb -uroot -S "$place/mysql.s" -Ne "$1"; }
for _ in $(seq 100); do
	asked 'select 1' >/dev/null 2>&1 && break
	sleep 0.1
done
asked 'create database b; create table b.t (id bigint auto_increment primary key, v char(100))'

# Each appends a line: who, clients, commits per second.
of_postgres() {
	"$bin/pgbench" -n -N -M prepared -c "$1" -j 2 -T "$seconds" 2>/dev/null |
		sed -n "s/^tps = \([0-9.]*\).*/postgres $1 \1/p" >>"$figures"
}
of_mariadb() {
	local before after
	before=$(asked 'select count(*) from b.t')
	timeout "$seconds" mariadb-slap -uroot -S "$place/mysql.s" --concurrency="$1" --number-of-queries=100000000 \
		--create-schema=b --no-drop --query="insert into b.t (v) values (repeat('x', 100))" >/dev/null 2>&1 || true
	after=$(asked 'select count(*) from b.t')
	echo "mariadb $1 $(((after - before) / seconds))" >>"$figures"
}
of_rigel() {
	rm -rf "$place/run"
	LD_PRELOAD=$slow "$program" curve "$place" --log reused --size 8KiB --writers "$1" --point-min "${seconds}s" \
		--point-max "${seconds}s" --no-progress --out "$place/run" >"$place/rigel.log" 2>&1 ||
		{ cat "$place/rigel.log" >&2; exit 1; }
	"$program" report "$place/run" --format csv |
		awk -F, -v writers="$1" 'NR == 1 { for (at = 1; at <= NF; at++) if ($at == "iops") column = at }
			NR == 2 { print "rigel", writers, $column }' >>"$figures"
}

for _ in $(seq "$rounds"); do
	for count in $clients; do
		of_postgres "$count"
		of_rigel "$count"
		of_mariadb "$count"
	done
done

median() {
	awk -v who="$1" -v clients="$2" '$1 == who && $2 == clients { print $3 }' "$figures" | sort -g |
		awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}
echo "| clients | PostgreSQL | MariaDB | rigel | rigel ÷ PostgreSQL | rigel ÷ MariaDB |"
echo '|---|---|---|---|---|---|'
for count in $clients; do
	echo "$count $(median postgres "$count") $(median mariadb "$count") $(median rigel "$count")" |
		awk '{ printf "| %d | %.0f | %.0f | %.0f | %.2f | %.2f |\n", $1, $2, $3, $4, $4 / $2, $4 / $3 }'
done
