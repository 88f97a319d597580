#!/bin/sh
# Runs the files of this directory by SQL*Plus or SQLcl: sh run.sh load | resume | proof | run [NAME] | drop
#
#   load    creates the tables (2), loads them by 2 sessions each (3), makes indexes (4), proves (5)
#   resume  goes on with a load that was stopped: chunks that are there are not loaded again (3, 4, 5)
#   proof   shows that there is one row in a block, in shuffled order, and the plan (5)
#   run     4 sessions for 60.0 s after 10.0 s of warm-up; leaves spool_NAME.txt for `rigel import`
#   drop    removes what load made, and nothing else (9)
#
# It connects as the owner of the tables. No password is ever an argument or an environment variable
# of a process:
#   RIGEL_CONNECT      user@service, such as rigel@//db1:1521/pdb1; or /@alias for a wallet; or / for
#                      the user of the operating system. Asked for if it is not set
#   RIGEL_PASSWORD_FD  number of an open file descriptor to read the password from, instead of a prompt
#   RIGEL_SQLPLUS      the program: sqlplus (default), or sql for SQLcl
#   RIGEL_YES          set to 1: do not ask before redo is written

set -eu
umask 077
set -C
cd -- "$(dirname -- "$0")"

program=${RIGEL_SQLPLUS:-sqlplus}
password=

fail() {
  printf 'run.sh: %s\n' "$1" >&2
  exit 1
}

ask_password() {
  case $connect in
    /*) return 0 ;;
  esac
  case ${connect%%@*} in
    */*) fail 'RIGEL_CONNECT contains a password: leave it out, it is asked for' ;;
  esac
  if [ -n "${RIGEL_PASSWORD_FD:-}" ]; then
    case $RIGEL_PASSWORD_FD in
      *[!0-9]*) fail 'RIGEL_PASSWORD_FD is not the number of a file descriptor' ;;
    esac
    eval "IFS= read -r password <&$RIGEL_PASSWORD_FD" || [ -n "$password" ] || fail 'no password could be read'
  else
    [ -t 0 ] || fail 'there is no terminal to ask for a password: use RIGEL_PASSWORD_FD, or a wallet'
    printf 'Password of %s: ' "${connect%%@*}" >&2
    stty -echo
    trap 'stty echo; exit 1' HUP INT TERM
    IFS= read -r password || :
    stty echo
    trap stop HUP INT TERM
    printf '\n' >&2
  fi
  case $password in
    *\"*) fail 'SQL*Plus accepts no password with a double quote: use a wallet' ;;
    '') fail 'the password is empty' ;;
  esac
}

# The statement that connects. printf is part of the shell: its arguments are in no process list.
connect_statement() {
  printf 'SET DEFINE OFF ECHO OFF\nWHENEVER SQLERROR EXIT FAILURE\n'
  if [ -z "$password" ]; then
    printf 'CONNECT %s\n' "$connect"
  elif [ "${connect%%@*}" = "$connect" ]; then
    printf 'CONNECT %s/"%s"\n' "$connect" "$password"
  else
    printf 'CONNECT %s/"%s"@%s\n' "${connect%%@*}" "$password" "${connect#*@}"
  fi
  printf 'SET DEFINE ON\n'
}

# Runs a file with its arguments, as the owner of the tables.
execute() {
  { connect_statement; printf '@%s\n' "$*"; } | "$program" -S /nolog
}

# Runs several in parallel, and waits for all of them. `started` has their process numbers.
started=
wait_for_all() {
  failed=0
  for process in $started; do
    wait "$process" || failed=$((failed + 1))
  done
  started=
  [ "$failed" -eq 0 ]
}
stop() {
  [ -z "$started" ] || printf 'run.sh: sessions in the server go on to their end; their module is rigel\n' >&2
  fail 'stopped'
}
trap stop HUP INT TERM

agree() {
  printf '%s\n' "$1"
  [ "${RIGEL_YES:-}" = 1 ] && return 0
  [ -t 0 ] || fail 'set RIGEL_YES=1 to agree without a terminal'
  printf 'Go on? [y/N] '
  IFS= read -r answer
  case $answer in
    y|Y|yes) return 0 ;;
    *) fail 'nothing was done' ;;
  esac
}

load() {
  agree 'load writes about 63.3 MiB of redo and 162 MiB of data.'
  [ "$1" = resume ] || execute 2_create.sql
  for table in rigel_blocks_1 rigel_blocks_2 rigel_scan_1 rigel_scan_2; do
    job=1
    while [ "$job" -le 2 ]; do
      execute 3_load.sql "$job" "$table" &
      started="$started $!"
      job=$((job + 1))
    done
    wait_for_all || fail "not all sessions that load $table ended well: see above, then: sh run.sh resume"
  done
  execute 4_index.sql
  execute 5_proof.sql
}

run() {
  name=${1:-$(date +%Y%m%dT%H%M%S)}
  case $name in
    *[!A-Za-z0-9_]*|'') fail 'the name of a run has letters, digits and _ only' ;;
  esac
  [ ! -e "spool_$name.txt" ] || fail "there is a spool_$name.txt already: give another name"
  agree 'run writes at most about 32 GiB of redo, 766 bytes of each updated row: a session ends after 11214013 updated rows.'
  mkdir "work_$name" || fail "there is a work_$name already: give another name"
  # The name in the spool is of this run alone, so that spools of two runs are never taken for one.
  id="${name}_$(od -An -N4 -tx4 /dev/urandom | tr -d ' \n')"
  start=$(execute 6_start.sql "$id" | sed -n "s/^RIGEL|$id|driver|start|\([0-9][0-9]*\)\$/\1/p")
  [ -n "$start" ] || fail 'the server did not tell the time: run 6_start.sql by hand'
  session=1
  while [ "$session" -le 4 ]; do
    execute 8_session.sql "$session" "$id" "$start" "$(((session - 1) % 2 + 1))" \
      >"work_$name/session_$session.txt" 2>&1 &
    started="$started $!"
    session=$((session + 1))
  done
  # Both moments lie inside the time in which all sessions work.
  execute 7_figures.sql "$id" before "$((start + 11000000))" >"work_$name/before.txt" 2>&1 &
  started="$started $!"
  execute 7_figures.sql "$id" after "$((start + 69000000))" >"work_$name/after.txt" 2>&1 &
  started="$started $!"
  ended=0
  wait_for_all || ended=1
  [ "$ended" -eq 0 ] || printf 'run.sh: a session did not end well: see the spool\n' >&2
  {
    printf 'RIGEL|%s|driver|spool|1|oracle\n' "$id"
    printf 'RIGEL|%s|driver|setting|sessions|4\n' "$id"
    printf 'RIGEL|%s|driver|setting|schemas|2\n' "$id"
    printf 'RIGEL|%s|driver|setting|scale|10240\n' "$id"
    printf 'RIGEL|%s|driver|setting|scan_blocks|128\n' "$id"
    printf 'RIGEL|%s|driver|setting|read_rows|64\n' "$id"
    printf 'RIGEL|%s|driver|setting|update_rows|64\n' "$id"
    printf 'RIGEL|%s|driver|setting|update_share|0.2\n' "$id"
    printf 'RIGEL|%s|driver|setting|scan_share|0.1\n' "$id"
    printf 'RIGEL|%s|driver|setting|changed_columns|2\n' "$id"
    printf 'RIGEL|%s|driver|setting|think|10\n' "$id"
    printf 'RIGEL|%s|driver|setting|warm_up_s|10\n' "$id"
    printf 'RIGEL|%s|driver|setting|run_time_s|60\n' "$id"
    printf 'RIGEL|%s|driver|setting|work_loop|0\n' "$id"
    printf 'RIGEL|%s|driver|setting|redo_of_updated_row|766\n' "$id"
    printf 'RIGEL|%s|driver|start|%s\n' "$id" "$start"
    cat "work_$name/before.txt" "work_$name/after.txt"
    session=1
    while [ "$session" -le 4 ]; do
      cat "work_$name/session_$session.txt"
      session=$((session + 1))
    done
    printf 'RIGEL|%s|driver|end|%s\n' "$id" 4
  } >"spool_$name.txt"
  rm -r "work_$name"
  printf 'spool_%s.txt is complete. Next: rigel import spool_%s.txt\n' "$name" "$name"
  [ "$ended" -eq 0 ]
}

case ${1:-} in
  load|resume|proof|run|drop) ;;
  *) fail 'usage: sh run.sh load | resume | proof | run [NAME] | drop' ;;
esac
command -v "$program" >/dev/null || fail "$program was not found: set RIGEL_SQLPLUS"
connect=${RIGEL_CONNECT:-}
if [ -z "$connect" ]; then
  [ -t 0 ] || fail 'set RIGEL_CONNECT to user@service, or to /@alias for a wallet'
  printf 'Connect as (user@service): ' >&2
  IFS= read -r connect
fi
case $connect in
  *[!A-Za-z0-9_.@/:?=\(\)\$\#-]*|'') fail 'RIGEL_CONNECT has a character that no user, host or service name has' ;;
esac
ask_password
case $1 in
  load|resume) load "$1" ;;
  proof) execute 5_proof.sql ;;
  run) run "${2:-}" ;;
  drop) execute 9_drop.sql ;;
esac
