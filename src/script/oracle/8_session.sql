-- One session of the measurement. run.sh starts {{sessions}} of them, which begin at the same moment.
--   1  number of the session, from 1
--   2  name of the run
--   3  moment of the start, in microseconds since 1970 by the server's clock
--   4  number of its table, from 1
--
-- It changes nothing but columns of the tables of 2_create.sql, and prints what it did when it ends.

{{header}}
DEFINE session_number = &1
DEFINE run = &2
DEFINE start_us = &3
DEFINE table_number = &4

DECLARE
  c_run CONSTANT VARCHAR2(60) := '&run';
  c_who CONSTANT VARCHAR2(20) := 'session &session_number';
  c_start_us CONSTANT NUMBER := &start_us;
  -- Measured after the warm-up; 0 for the end of a run of fixed work.
  c_from_us CONSTANT NUMBER := c_start_us + {{warm_up_us}};
  c_until_us CONSTANT NUMBER := {{until_us}};
  c_operations CONSTANT INTEGER := {{work_loop}};
  -- Updated rows after which the session ends: its part of --max-redo, by the estimate.
  c_updated_rows_max CONSTANT INTEGER := {{updated_rows_max}};
  -- Failures after which the session ends.
  c_failures_max CONSTANT INTEGER := 100;
  -- After an update that took longer, the session looks whether logs can still be archived.
  c_slow_update_us CONSTANT NUMBER := 1000000;

  -- The loop's logic: begin
{{logic}}  -- The loop's logic: end

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

{{clock}}{{figures_of}}  -- The session's own figures, which vanish when it ends.
  PROCEDURE put_own(p_moment VARCHAR2) IS
  BEGIN
    put_all('v$mystat',
      'SELECT ''own|' || p_moment || '|'' || n.name || ''|'' || m.value FROM v$mystat m '
      || 'JOIN v$statname n ON n.statistic# = m.statistic# WHERE n.name IN ({{statistics}}) ORDER BY n.name');
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
  begin_session(&session_number, {{seed}});

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
