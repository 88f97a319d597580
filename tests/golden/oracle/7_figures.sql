-- The server's own figures at one moment. run.sh takes them twice, inside the time in which all
-- sessions work: their difference is what the server did. It reads views, and changes nothing.
-- Nothing of the Diagnostics Pack is read: no AWR, no ASH.
--   1  name of the run
--   2  before, or after
--   3  the moment, in microseconds since 1970; 0 is now

SET ECHO OFF FEEDBACK OFF HEADING OFF PAGESIZE 0 LINESIZE 1000 TRIMOUT ON TAB OFF VERIFY OFF
SET SERVEROUTPUT ON SIZE UNLIMITED FORMAT TRUNCATED
WHENEVER SQLERROR EXIT FAILURE ROLLBACK
WHENEVER OSERROR EXIT FAILURE ROLLBACK
ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,';
EXECUTE DBMS_APPLICATION_INFO.SET_MODULE('rigel', 'figures');

DEFINE run = &1
DEFINE moment = &2
DEFINE at_us = &3

DECLARE
  c_run CONSTANT VARCHAR2(60) := '&run';
  c_who CONSTANT VARCHAR2(20) := '&moment';

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

BEGIN
  IF c_who = 'before' THEN
    put('who|db_name|' || SYS_CONTEXT('USERENV', 'DB_NAME'));
    put('who|container|' || SYS_CONTEXT('USERENV', 'CON_NAME'));
    put('who|service|' || SYS_CONTEXT('USERENV', 'SERVICE_NAME'));
    put_all('product_component_version',
      'SELECT ''who|release|'' || version FROM product_component_version WHERE LOWER(product) LIKE ''oracle%''');
    put_all('v$instance',
      'SELECT ''who|instance|'' || instance_name || ''|'' || instance_number || ''|'' || host_name FROM v$instance');
    put_all('v$database',
      'SELECT ''who|log_mode|'' || log_mode || ''|'' || force_logging FROM v$database');
    put_all('user_tablespaces',
      'SELECT ''who|block_bytes|'' || block_size FROM user_tablespaces WHERE tablespace_name = '
      || '(SELECT tablespace_name FROM user_tables WHERE table_name = ''RIGEL_BLOCKS_1'')');
    put_all('v$parameter',
      'SELECT ''parameter|'' || name || ''|'' || value FROM v$parameter WHERE name IN (''commit_logging'', '
      || '''commit_wait'', ''db_block_size'', ''db_cache_size'', ''db_file_multiblock_read_count'', '
      || '''disk_asynch_io'', ''filesystemio_options'', ''max_iops'', ''max_mbps'', ''sga_target'', '
      || '''timed_statistics'') ORDER BY name');
    put_all('v$sgainfo',
      'SELECT ''parameter|Buffer Cache Size|'' || bytes FROM v$sgainfo WHERE name = ''Buffer Cache Size''');
  END IF;
  pause((&at_us - now_us()) / 1000000);
  put('moment|' || now_us());
  put_all('v$sysstat',
    'SELECT ''statistic|'' || name || ''|'' || value FROM v$sysstat WHERE name IN ('
      || '''Batched IO vector read count'', ''SQL*Net roundtrips to/from client'', '
      || '''consistent gets'', ''db block changes'', ''execute count'', ''parse count (hard)'', '
      || '''physical read IO requests'', ''physical read bytes'', ''physical read total IO requests'', '
      || '''physical read total bytes'', ''physical reads'', ''physical reads cache'', '
      || '''physical reads cache prefetch'', ''physical reads direct'', ''physical write IO requests'', '
      || '''physical write bytes'', ''physical write total IO requests'', ''physical write total bytes'', '
      || '''redo size'', ''redo synch writes'', ''redo writes'', ''session logical reads'', '
      || '''table fetch by rowid'', ''table fetch continued row'', ''redo wastage'', '
      || '''table scan blocks gotten'', ''table scan rows gotten'', ''table scans (direct read)'', '
      || '''user commits'', ''user rollbacks'') ORDER BY name');
  put_all('v$system_event',
    'SELECT ''wait|'' || event || ''|'' || wait_class || ''|'' || total_waits || ''|'' || time_waited_micro '
    || 'FROM v$system_event WHERE wait_class <> ''Idle'' ORDER BY event');
  put_all('v$event_histogram_micro',
    'SELECT ''histogram|'' || event || ''|'' || wait_time_micro || ''|'' || wait_count '
    || 'FROM v$event_histogram_micro WHERE event IN (''cell single block physical read'', '
    || '''db file parallel read'', ''db file parallel write'', ''db file scattered read'', '
    || '''db file sequential read'', ''direct path read'', ''log file parallel write'', ''log file sync'') '
    || 'ORDER BY event, wait_time_micro');
  put_all('v$sys_time_model',
    'SELECT ''time|'' || stat_name || ''|'' || value FROM v$sys_time_model '
    || 'WHERE stat_name IN (''DB time'', ''DB CPU'', ''background cpu time'') ORDER BY stat_name');
  put_all('v$osstat',
    'SELECT ''host|'' || stat_name || ''|'' || value FROM v$osstat WHERE stat_name IN (''NUM_CPUS'', '
    || '''NUM_CPU_CORES'', ''BUSY_TIME'', ''IDLE_TIME'', ''USER_TIME'', ''SYS_TIME'', ''IOWAIT_TIME'', '
    || '''PHYSICAL_MEMORY_BYTES'') ORDER BY stat_name');
  put_all('v$iostat_function',
    'SELECT ''function|'' || function_name || ''|'' || (small_read_reqs + large_read_reqs) || ''|'' '
    || '|| (small_read_megabytes + large_read_megabytes) || ''|'' || (small_write_reqs + large_write_reqs) '
    || '|| ''|'' || (small_write_megabytes + large_write_megabytes) || ''|'' || number_of_waits || ''|'' '
    || '|| wait_time FROM v$iostat_function ORDER BY function_name');
  put('taken|' || now_us());
END;
/
EXIT
