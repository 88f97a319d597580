#!/bin/sh
# Twelve facts about the files of `rigel sql script oracle`, asserted on Oracle Database Free.
#
#   sh facts.sh CONTAINER [DIR]
#
# CONTAINER is a running container of Oracle Database Free with a pluggable database FREEPDB1
# (RIGEL_PDB), reached by `docker exec`, or by another program (RIGEL_CONTAINERS=podman). The script
# makes a user RIGEL_FACTS there with a random password, and removes that user at its end. It replaces
# the database's calibration of I/O, which in such a container is nobody's.
#
# It leaves DIR/facts.log: each fact with true or false, and what was seen. Send us that log. Publish
# no figures of other editions of Oracle: their licence forbids it without consent; the terms of
# Database Free are said to allow it.
#
# Written for Oracle Database Free, and never run on one by its authors.

set -eu
umask 077
container=${1:?usage: sh facts.sh CONTAINER [DIR]}
directory=${2:-facts}
containers=${RIGEL_CONTAINERS:-docker}
rigel=${RIGEL:-rigel}
pdb=${RIGEL_PDB:-FREEPDB1}
mkdir "$directory"
log=$directory/facts.log
password=R_$(od -An -N12 -tx4 /dev/urandom | tr -d ' \n')

inside() {
  "$containers" exec -i "$container" sqlplus -S "$@"
}

# Statements of stdin, as a DBA in the pluggable database.
as_dba() {
  { printf 'ALTER SESSION SET CONTAINER = %s;\n' "$pdb"; cat; } | inside / as sysdba
}

# Statements of stdin, as the owner of the tables. The password goes through the pipe.
as_user() {
  {
    printf 'SET DEFINE OFF\nCONNECT rigel_facts/"%s"@//localhost:1521/%s\nSET DEFINE ON\n' "$password" "$pdb"
    cat
  } | inside /nolog
}

# Defines &1, &2 and so on.
arguments() {
  position=0
  for value in "$@"; do
    position=$((position + 1))
    printf 'DEFINE %s = %s\n' "$position" "$value"
  done
}

# A file with its arguments, as the owner of the tables.
file() {
  name=$1
  shift
  { arguments "$@"; cat "$directory/files/$name"; } | as_user
}

# The one value of a query.
value_of() {
  printf 'SET HEADING OFF FEEDBACK OFF PAGESIZE 0\n%s;\n' "$1" | as_user | tail -n 1 | tr -d ' \r'
}

number=0
fact() {
  number=$((number + 1))
  printf '%2d  %-5s  %s: %s\n' "$number" "$2" "$1" "$3" | tee -a "$log"
}
is() {
  if [ "$1" = "$2" ]; then echo true; else echo false; fi
}
between() {
  if [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]; then echo true; else echo false; fi
}

# Two sessions of the fixed work, collected as run.sh does.
measure() {
  start=$(file 6_start.sql "$1" | tr -d '\r' | sed -n "s/^RIGEL|$1|driver|start|\([0-9]*\)\$/\1/p")
  file 7_figures.sql "$1" before 0 >"$directory/before.txt"
  for session in 1 2; do
    file 8_session.sql "$session" "$1" "$start" 1 >"$directory/session_$session.txt" &
  done
  wait
  file 7_figures.sql "$1" after 0 >"$directory/after.txt"
  {
    printf 'RIGEL|%s|driver|spool|1|oracle\nRIGEL|%s|driver|setting|sessions|2\n' "$1" "$1"
    cat "$directory/before.txt" "$directory/after.txt" "$directory/session_1.txt" "$directory/session_2.txt"
    printf 'RIGEL|%s|driver|end|2\n' "$1"
  } | tr -d '\r' >"$directory/spool_$1.txt"
}

# The sum of field $2 over the lines of operations of kind $1.
operations() {
  awk -F'|' -v kind="$1" -v at="$2" '$4 == "operations" && $5 == kind { s += $at } END { print s + 0 }' \
    "$directory/spool_facts.txt"
}
# What a statistic of the sessions grew by.
grown() {
  awk -F'|' -v name="$1" '$4 == "own" && $6 == name { s += ($5 == "after" ? 1 : -1) * $7 } END { print s + 0 }' \
    "$directory/spool_facts.txt"
}

"$rigel" sql script oracle --scale 20000 --scan-table 2000 --update 20% --scan 5% --work-loop 200 -t 2 \
  "$directory/files"
"$rigel" sql script oracle-calibrate "$directory/calibrate"
printf 'CREATE USER rigel_facts IDENTIFIED BY "%s";\n' "$password" | as_dba
trap 'printf "DROP USER rigel_facts CASCADE;\n" | as_dba >/dev/null' EXIT
{ arguments rigel_facts users; cat "$directory/files/1_grants.sql"; } | as_dba

redo="SELECT value FROM v\$sysstat WHERE name = 'redo size'"
redo_before=$(value_of "$redo")
file 2_create.sql
for table in rigel_blocks_1 rigel_scan_1; do
  for job in 1 2; do
    file 3_load.sql "$job" "$table" &
  done
  wait
done
redo_of_row=$((($(value_of "$redo") - redo_before) / 22000))
file 4_index.sql
file 5_proof.sql | tr -d '\r' >"$directory/proof.txt"

fact 'one row in a block' "$(is "$(grep -c '|rows \([0-9]*\)|blocks \1|most 1' "$directory/proof.txt" || :)" 2)" \
  "$(grep -e '|rows ' -e correlation "$directory/proof.txt" | tr '\n' ' ')"
fact 'the plan is not batched' "$(is "$(grep -c 'TABLE ACCESS BY INDEX ROWID *|' "$directory/proof.txt" || :)" 1)" \
  "$(grep 'TABLE ACCESS' "$directory/proof.txt")"
measure facts
reads=$(operations read 6)
updates=$(operations update 6)
fact 'an operation finds exactly 64 rows' "$(is "$(operations read 8)" "$((reads * 64))")" \
  "$(operations read 8) rows of $reads reads, $(operations update 8) of $updates updates"
fact 'reads are of single blocks' \
  "$(is "$(grown 'Batched IO vector read count') $(grown 'table fetch continued row')" '0 0')" \
  "batched $(grown 'Batched IO vector read count'), continued rows $(grown 'table fetch continued row')"
fact 'scans are direct' "$(between "$(grown 'table scans (direct read)')" 1 1000000)" \
  "$(grown 'table scans (direct read)') direct of $(operations scan 6) scans"
fact 'each commit is waited for' "$(between "$(grown 'redo synch writes')" "$updates" 1000000)" \
  "$(grown 'redo synch writes') syncs of $updates updates"
per_update=$(($(grown 'redo size') / (updates > 0 ? updates : 1)))
fact 'redo is within 10 % of the estimate' "$(between "$per_update" 44122 53926)" \
  "$per_update bytes of an update of 64 rows, 49024 by the estimate; $redo_of_row of a loaded row, 3200 by the estimate"
missing=$(grep '|missing|' "$directory/spool_facts.txt" | tr '\n' ' ' || :)
fact 'every view can be read in the pluggable database' "$(is "$missing" '')" "${missing:-all of them}"
printf 'REVOKE SELECT ON v_$osstat FROM rigel_facts;\n' | as_dba >/dev/null
measure revoked
named=$(grep '|missing|' "$directory/spool_revoked.txt" | cut -d'|' -f5,6 | sort -u | tr '\n' ' ' || :)
fact 'a view without its grant is named' "$(is "$named" 'v$osstat|-942 ')" "$named"
"$rigel" import "$directory/spool_facts.txt" --out "$directory/run" >"$directory/report.txt" && imported=true || imported=false
fact 'rigel import reads the spool' "$imported" "$(sed -n 4p "$directory/report.txt")"

# A load that is killed leaves nothing that 9_drop.sql does not remove.
file 9_drop.sql >"$directory/drop.txt"
file 2_create.sql
file 3_load.sql 1 rigel_blocks_1 >/dev/null 2>&1 &
sleep 2
as_dba <<'SQL' || :
BEGIN
  FOR s IN (SELECT sid || ',' || serial# AS who FROM v$session WHERE username = 'RIGEL_FACTS') LOOP
    EXECUTE IMMEDIATE 'ALTER SYSTEM KILL SESSION ''' || s.who || ''' IMMEDIATE';
  END LOOP;
END;
/
SQL
wait
file 9_drop.sql >>"$directory/drop.txt"
left=$(value_of 'SELECT COUNT(*) FROM user_objects')
fact 'nothing is left, also of a load that was killed' "$(is "$left" 0)" "$left objects"

{ arguments 1 20 REPLACE; cat "$directory/calibrate/calibrate_io.sql"; } | inside / as sysdba | tr -d '\r' \
  >"$directory/calibrate_io.txt"
"$rigel" import "$directory/calibrate_io.txt" --out "$directory/claimed" >"$directory/claimed.txt" 2>&1 &&
  claimed=true || claimed=false
fact 'CALIBRATE_IO leaves its row' "$claimed" \
  "$(grep -h -e 'claims' -e 'ORA-' "$directory/claimed.txt" "$directory/calibrate_io.txt" | tail -n 1)"
grep -h 'who|release' "$directory/spool_facts.txt" | head -n 1 | tee -a "$log"
! grep -q '^ *[0-9]*  false' "$log"
