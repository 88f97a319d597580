-- One session of the measurement. run.sh starts 4 of them, which begin at the same moment.
--   1  number of the session, from 1
--   2  name of the run
--   3  moment of the start, in microseconds since 1970 by the server's clock
--   4  number of its table, from 1
--
-- It changes nothing but columns of the tables of 2_create.sql, and prints what it did when it ends.

SET ECHO OFF FEEDBACK OFF HEADING OFF PAGESIZE 0 LINESIZE 1000 TRIMOUT ON TAB OFF VERIFY OFF
SET SERVEROUTPUT ON SIZE UNLIMITED FORMAT TRUNCATED
WHENEVER SQLERROR EXIT FAILURE ROLLBACK
WHENEVER OSERROR EXIT FAILURE ROLLBACK
ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,';
EXECUTE DBMS_APPLICATION_INFO.SET_MODULE('rigel', 'session');

DEFINE session_number = &1
DEFINE run = &2
DEFINE start_us = &3
DEFINE table_number = &4

DECLARE
  c_run CONSTANT VARCHAR2(60) := '&run';
  c_who CONSTANT VARCHAR2(20) := 'session &session_number';
  c_start_us CONSTANT NUMBER := &start_us;
  -- Measured after the warm-up; 0 for the end of a run of fixed work.
  c_from_us CONSTANT NUMBER := c_start_us + 10000000;
  c_until_us CONSTANT NUMBER := c_from_us + 60000000;
  c_operations CONSTANT INTEGER := 0;
  -- Updated rows after which the session ends: its part of --max-redo, by the estimate.
  c_updated_rows_max CONSTANT INTEGER := 11214013;
  -- Failures after which the session ends.
  c_failures_max CONSTANT INTEGER := 100;
  -- After an update that took longer, the session looks whether logs can still be archived.
  c_slow_update_us CONSTANT NUMBER := 1000000;

  -- The loop's logic: begin
  g_scale INTEGER := 10240;
  g_read_rows INTEGER := 64;
  g_update_rows INTEGER := 64;
  g_scan_rows INTEGER := 128;
  -- Shares are dealt from decks of this many cards, so that they are exact after every deck.
  g_update_share NUMBER(20,12) := 0.2;
  g_update_cards INTEGER := 5;
  g_scan_share NUMBER(20,12) := 0.1;
  g_scan_cards INTEGER := 10;
  -- Every nth operation goes to a window of the table; to the first table; is followed by a pause.
  -- 0 is never.
  g_hot_every INTEGER := 3;
  g_hot_first INTEGER := 2048;
  g_hot_rows INTEGER := 1024;
  g_first_table_every INTEGER := 5;
  g_think_every INTEGER := 10;
  g_think_min_ms INTEGER := 10;
  g_think_max_ms INTEGER := 20;

  g_one INTEGER := 1;
  g_two INTEGER := 1;
  g_session INTEGER := 1;
  g_text VARCHAR2(4000) := '';
  g_made INTEGER := 0;
  g_update_left INTEGER := 0;
  g_update_hits_left INTEGER := 0;
  g_update_dealt INTEGER := 0;
  g_update_hits INTEGER := 0;
  g_scan_left INTEGER := 0;
  g_scan_hits_left INTEGER := 0;
  g_scan_dealt INTEGER := 0;
  g_scan_hits INTEGER := 0;
  g_think_ms INTEGER := 0;
  -- The operation: its kind (1 read, 2 update, 3 scan), its keys, the rows that it must find, and
  -- those that it found.
  g_kind INTEGER := 1;
  g_of_first_table INTEGER := 0;
  g_first INTEGER := 1;
  g_last INTEGER := 1;
  g_rows INTEGER := 0;
  g_found INTEGER := 0;
  g_value VARCHAR2(128) := '';

  -- A random number from 0 to p_limit - 1: L'Ecuyer's two combined generators, whose period is 2.3E18.
  FUNCTION below(p_limit INTEGER) RETURN INTEGER AS
    z INTEGER;
  BEGIN
    g_one := MOD(40014 * g_one, 2147483563);
    g_two := MOD(40692 * g_two, 2147483399);
    z := g_one - g_two;
    IF z < 1 THEN
      z := z + 2147483562;
    END IF;
    RETURN LEAST(FLOOR((z - 1) * p_limit / 2147483562), p_limit - 1);
  END;

  -- Another session, or another seed, has other numbers.
  PROCEDURE begin_session(p_session INTEGER, p_seed INTEGER) AS
    n INTEGER;
  BEGIN
    g_session := p_session;
    g_one := 1 + MOD(p_session * 7919 + p_seed * 104729, 2147483562);
    g_two := 1 + MOD(p_session * 15485863 + p_seed, 2147483398);
    FOR i IN 1 .. 20 LOOP
      n := below(1000);
    END LOOP;
    FOR i IN 1 .. 2000 LOOP
      g_text := g_text || CHR(65 + below(26));
    END LOOP;
  END;

  -- 1 if the next operation is an update.
  FUNCTION deal_update RETURN INTEGER AS
    hit INTEGER := 0;
  BEGIN
    IF g_update_left = 0 THEN
      g_update_dealt := g_update_dealt + g_update_cards;
      g_update_left := g_update_cards;
      g_update_hits_left := ROUND(g_update_share * g_update_dealt) - g_update_hits;
      g_update_hits := g_update_hits + g_update_hits_left;
    END IF;
    IF below(g_update_left) < g_update_hits_left THEN
      hit := 1;
    END IF;
    g_update_left := g_update_left - 1;
    g_update_hits_left := g_update_hits_left - hit;
    RETURN hit;
  END;

  -- 1 if the next read is a scan.
  FUNCTION deal_scan RETURN INTEGER AS
    hit INTEGER := 0;
  BEGIN
    IF g_scan_left = 0 THEN
      g_scan_dealt := g_scan_dealt + g_scan_cards;
      g_scan_left := g_scan_cards;
      g_scan_hits_left := ROUND(g_scan_share * g_scan_dealt) - g_scan_hits;
      g_scan_hits := g_scan_hits + g_scan_hits_left;
    END IF;
    IF below(g_scan_left) < g_scan_hits_left THEN
      hit := 1;
    END IF;
    g_scan_left := g_scan_left - 1;
    g_scan_hits_left := g_scan_hits_left - hit;
    RETURN hit;
  END;

  -- The next operation: what, where, how many rows.
  PROCEDURE choose AS
    window_first INTEGER := 1;
    window_rows INTEGER := g_scale;
  BEGIN
    g_made := g_made + 1;
    g_of_first_table := 0;
    IF g_first_table_every > 0 AND MOD(g_made, GREATEST(g_first_table_every, 1)) = 0 THEN
      g_of_first_table := 1;
    END IF;
    IF deal_update() = 1 THEN
      g_kind := 2;
      g_rows := g_update_rows;
    ELSIF deal_scan() = 1 THEN
      g_kind := 3;
      g_rows := g_scan_rows;
    ELSE
      g_kind := 1;
      g_rows := g_read_rows;
    END IF;
    IF g_kind <> 3 THEN
      IF g_hot_every > 0 AND MOD(g_made, GREATEST(g_hot_every, 1)) = 0 THEN
        window_first := g_hot_first + 1;
        window_rows := g_hot_rows;
      END IF;
      g_first := window_first + below(window_rows - g_rows + 1);
      g_last := g_first + g_rows - 1;
    END IF;
    IF g_kind = 2 THEN
      -- A value that no row has: the database logs no change of a column to the same value.
      g_value := SUBSTR(g_text, 1 + below(1892), 108) || LPAD(g_session, 8, '0') || LPAD(g_made, 12, '0');
    END IF;
  END;

  -- Milliseconds to pause after this operation; 0 after most.
  FUNCTION think_ms RETURN INTEGER AS
  BEGIN
    g_think_ms := 0;
    IF g_think_every > 0 AND MOD(g_made, GREATEST(g_think_every, 1)) = 0 THEN
      g_think_ms := g_think_min_ms + below(g_think_max_ms - g_think_min_ms + 1);
    END IF;
    RETURN g_think_ms;
  END;

  -- Carries the operation out. An update is committed, and the commit is waited for.
  PROCEDURE carry_out AS
  BEGIN
    g_found := 0;
    IF g_kind = 2 AND g_of_first_table = 1 THEN
      UPDATE rigel_blocks_1 b SET b.c1 = g_value, b.c19 = g_value
        WHERE b.id BETWEEN g_first AND g_last;
      g_found := SQL%ROWCOUNT;
      COMMIT WRITE IMMEDIATE WAIT;
    ELSIF g_kind = 2 THEN
      UPDATE rigel_blocks_&table_number b SET b.c1 = g_value, b.c19 = g_value
        WHERE b.id BETWEEN g_first AND g_last;
      g_found := SQL%ROWCOUNT;
      COMMIT WRITE IMMEDIATE WAIT;
    ELSIF g_kind = 3 AND g_of_first_table = 1 THEN
      SELECT /*+ FULL(s) NO_PARALLEL(s) */ COUNT(s.c2) INTO g_found FROM rigel_scan_1 s;
    ELSIF g_kind = 3 THEN
      SELECT /*+ FULL(s) NO_PARALLEL(s) */ COUNT(s.c2) INTO g_found FROM rigel_scan_&table_number s;
    ELSIF g_of_first_table = 1 THEN
      SELECT /*+ INDEX(b rigel_blocks_1_id) NO_BATCH_TABLE_ACCESS_BY_ROWID(b) */ COUNT(b.c2) INTO g_found
        FROM rigel_blocks_1 b WHERE b.id BETWEEN g_first AND g_last;
    ELSE
      SELECT /*+ INDEX(b rigel_blocks_&table_number._id) NO_BATCH_TABLE_ACCESS_BY_ROWID(b) */ COUNT(b.c2)
        INTO g_found FROM rigel_blocks_&table_number b WHERE b.id BETWEEN g_first AND g_last;
    END IF;
  END;
  -- The loop's logic: end

  TYPE t_numbers IS TABLE OF NUMBER INDEX BY PLS_INTEGER;
  TYPE t_words IS TABLE OF VARCHAR2(10) INDEX BY PLS_INTEGER;
  TYPE t_errors IS TABLE OF NUMBER INDEX BY VARCHAR2(12);
  -- Of each kind of operation: 1 read, 2 update, 3 scan.
  v_names t_words;
  v_done t_numbers;
  v_failed t_numbers;
  v_rows t_numbers;
  v_sum_us t_numbers;
  v_min_us t_numbers;
  v_max_us t_numbers;
  -- Latencies: bucket n of kind k, at 100 * k + n, has those below 2^n us and not below 2^(n-1).
  v_buckets t_numbers;
  v_errors t_errors;
  v_error VARCHAR2(12);
  v_failures INTEGER := 0;
  v_updated_rows NUMBER := 0;
  v_clock_back INTEGER := 0;
  v_paused_us NUMBER := 0;
  v_is_measuring BOOLEAN := FALSE;
  v_measured INTEGER := 0;
  v_from_us NUMBER := 0;
  v_begin_us NUMBER;
  v_started_us NUMBER;
  v_end_us NUMBER;
  v_why VARCHAR2(20) := 'complete';

  -- Microseconds since 1970 by the server's clock.
  FUNCTION now_us RETURN NUMBER IS
    v_since INTERVAL DAY(9) TO SECOND(6) := SYS_EXTRACT_UTC(SYSTIMESTAMP) - TIMESTAMP '1970-01-01 00:00:00';
  BEGIN
    RETURN ROUND((((EXTRACT(DAY FROM v_since) * 24 + EXTRACT(HOUR FROM v_since)) * 60
      + EXTRACT(MINUTE FROM v_since)) * 60 + EXTRACT(SECOND FROM v_since)) * 1000000);
  END;

  -- Waits. DBMS_SESSION.SLEEP is there from release 18 on, for everybody.
  PROCEDURE pause(p_seconds NUMBER) IS
  BEGIN
    IF p_seconds > 0 THEN
      EXECUTE IMMEDIATE 'BEGIN DBMS_SESSION.SLEEP(:1); END;' USING p_seconds;
    END IF;
  EXCEPTION
    WHEN OTHERS THEN
      IF SQLCODE <> -6550 THEN
        RAISE;
      END IF;
      EXECUTE IMMEDIATE 'BEGIN DBMS_LOCK.SLEEP(:1); END;' USING p_seconds;
  END;

  PROCEDURE put(p_line VARCHAR2) IS
  BEGIN
    DBMS_OUTPUT.PUT_LINE('RIGEL|' || c_run || '|' || c_who || '|' || p_line);
  END;

  -- Prints a line for each row of a query. A view that the user may not read, or that this release
  -- does not have, is named, and its figures are unknown.
  PROCEDURE put_all(p_view VARCHAR2, p_query VARCHAR2) IS
    v_cursor SYS_REFCURSOR;
    v_line VARCHAR2(1000);
  BEGIN
    OPEN v_cursor FOR p_query;
    LOOP
      FETCH v_cursor INTO v_line;
      EXIT WHEN v_cursor%NOTFOUND;
      put(v_line);
    END LOOP;
    CLOSE v_cursor;
  EXCEPTION
    WHEN OTHERS THEN
      IF SQLCODE NOT IN (-942, -1031, -904) THEN
        RAISE;
      END IF;
      put('missing|' || p_view || '|' || SQLCODE);
  END;

  -- The session's own figures, which vanish when it ends.
  PROCEDURE put_own(p_moment VARCHAR2) IS
  BEGIN
    put_all('v$mystat',
      'SELECT ''own|' || p_moment || '|'' || n.name || ''|'' || m.value FROM v$mystat m '
      || 'JOIN v$statname n ON n.statistic# = m.statistic# WHERE n.name IN ('
      || '''Batched IO vector read count'', ''SQL*Net roundtrips to/from client'', '
      || '''consistent gets'', ''db block changes'', ''execute count'', ''parse count (hard)'', '
      || '''physical read IO requests'', ''physical read bytes'', ''physical read total IO requests'', '
      || '''physical read total bytes'', ''physical reads'', ''physical reads cache'', '
      || '''physical reads cache prefetch'', ''physical reads direct'', ''physical write IO requests'', '
      || '''physical write bytes'', ''physical write total IO requests'', ''physical write total bytes'', '
      || '''redo size'', ''redo synch writes'', ''redo writes'', ''session logical reads'', '
      || '''table fetch by rowid'', ''table fetch continued row'', ''redo wastage'', '
      || '''table scan blocks gotten'', ''table scan rows gotten'', ''table scans (direct read)'', '
      || '''user commits'', ''user rollbacks'') ORDER BY n.name');
    put_all('v$session_event',
      'SELECT ''ownwait|' || p_moment || '|'' || event || ''|'' || total_waits || ''|'' || time_waited_micro '
      || 'FROM v$session_event WHERE sid = SYS_CONTEXT(''USERENV'', ''SID'') AND wait_class <> ''Idle'' '
      || 'ORDER BY event');
  END;

  -- True if this session has waited for a log that could not be archived: then every update of the
  -- whole database waits, and more redo is the last thing that it needs.
  FUNCTION is_archiving_needed RETURN BOOLEAN IS
    v_waits NUMBER := 0;
  BEGIN
    EXECUTE IMMEDIATE
      'SELECT NVL(SUM(total_waits), 0) FROM v$session_event WHERE sid = SYS_CONTEXT(''USERENV'', ''SID'') '
      || 'AND event = ''log file switch (archiving needed)''' INTO v_waits;
    RETURN v_waits > 0;
  EXCEPTION
    WHEN OTHERS THEN
      RETURN FALSE;
  END;

  PROCEDURE note_failure(p_what VARCHAR2) IS
  BEGIN
    v_failures := v_failures + 1;
    IF v_is_measuring THEN
      v_failed(g_kind) := v_failed(g_kind) + 1;
    END IF;
    IF v_errors.EXISTS(p_what) THEN
      v_errors(p_what) := v_errors(p_what) + 1;
    ELSE
      v_errors(p_what) := 1;
    END IF;
  END;

  PROCEDURE note_time(p_us NUMBER) IS
    v_us NUMBER := p_us;
    v_bound NUMBER := 1;
    v_bucket PLS_INTEGER := 0;
  BEGIN
    IF v_us < 0 THEN
      v_clock_back := v_clock_back + 1;
      v_us := 0;
    END IF;
    WHILE v_us >= v_bound AND v_bucket < 40 LOOP
      v_bound := v_bound * 2;
      v_bucket := v_bucket + 1;
    END LOOP;
    v_buckets(100 * g_kind + v_bucket) := v_buckets(100 * g_kind + v_bucket) + 1;
    v_done(g_kind) := v_done(g_kind) + 1;
    v_rows(g_kind) := v_rows(g_kind) + g_found;
    v_sum_us(g_kind) := v_sum_us(g_kind) + v_us;
    v_min_us(g_kind) := LEAST(v_min_us(g_kind), v_us);
    v_max_us(g_kind) := GREATEST(v_max_us(g_kind), v_us);
  END;

BEGIN
  v_names(1) := 'read';
  v_names(2) := 'update';
  v_names(3) := 'scan';
  FOR k IN 1 .. 3 LOOP
    v_done(k) := 0;
    v_failed(k) := 0;
    v_rows(k) := 0;
    v_sum_us(k) := 0;
    v_min_us(k) := 1E18;
    v_max_us(k) := 0;
    FOR n IN 0 .. 40 LOOP
      v_buckets(100 * k + n) := 0;
    END LOOP;
  END LOOP;
  begin_session(&session_number, 1);

  pause((c_start_us - now_us()) / 1000000);
  put('begin|' || c_start_us || '|' || now_us() || '|&table_number|' || SYS_CONTEXT('USERENV', 'SID'));
  v_begin_us := now_us();
  LOOP
    IF NOT v_is_measuring AND v_begin_us >= c_from_us THEN
      put_own('before');
      v_is_measuring := TRUE;
      v_from_us := now_us();
      v_begin_us := v_from_us;
    END IF;
    choose();
    BEGIN
      carry_out();
      v_end_us := now_us();
      IF g_kind = 2 THEN
        v_updated_rows := v_updated_rows + g_found;
      END IF;
      IF g_found <> g_rows THEN
        note_failure('rows');
      ELSIF v_is_measuring THEN
        note_time(v_end_us - v_begin_us);
      END IF;
    EXCEPTION
      WHEN OTHERS THEN
        v_end_us := now_us();
        note_failure(SQLCODE);
        ROLLBACK;
    END;
    v_started_us := v_begin_us;
    v_begin_us := v_end_us;
    IF v_is_measuring THEN
      v_measured := v_measured + 1;
    END IF;
    IF c_until_us > 0 AND v_end_us >= c_until_us OR c_operations > 0 AND v_measured >= c_operations THEN
      EXIT;
    END IF;
    IF v_failures >= c_failures_max THEN
      v_why := 'failures';
      EXIT;
    END IF;
    IF v_updated_rows >= c_updated_rows_max AND c_updated_rows_max > 0 THEN
      v_why := 'max-redo';
      EXIT;
    END IF;
    IF g_kind = 2 AND v_end_us - v_started_us >= c_slow_update_us AND is_archiving_needed() THEN
      v_why := 'archiving';
      EXIT;
    END IF;
    IF think_ms() > 0 THEN
      pause(g_think_ms / 1000);
      v_begin_us := now_us();
      IF v_is_measuring THEN
        v_paused_us := v_paused_us + v_begin_us - v_end_us;
      END IF;
    END IF;
  END LOOP;
  -- The statistics are read after the last operation, and belong to the same operations.
  IF v_is_measuring THEN
    put_own('after');
  END IF;
  FOR k IN 1 .. 3 LOOP
    IF v_done(k) + v_failed(k) > 0 THEN
      put('operations|' || v_names(k) || '|' || v_done(k) || '|' || v_failed(k) || '|' || v_rows(k) || '|'
        || v_sum_us(k) || '|' || CASE WHEN v_done(k) > 0 THEN v_min_us(k) ELSE 0 END || '|' || v_max_us(k));
      FOR n IN 0 .. 40 LOOP
        IF v_buckets(100 * k + n) > 0 THEN
          put('latency|' || v_names(k) || '|' || POWER(2, n) || '|' || v_buckets(100 * k + n));
        END IF;
      END LOOP;
    END IF;
  END LOOP;
  v_error := v_errors.FIRST;
  WHILE v_error IS NOT NULL LOOP
    put('failed|' || v_error || '|' || v_errors(v_error));
    v_error := v_errors.NEXT(v_error);
  END LOOP;
  put('end|' || v_from_us || '|' || v_end_us || '|' || v_paused_us || '|' || v_clock_back || '|' || v_why);
END;
/
EXIT
