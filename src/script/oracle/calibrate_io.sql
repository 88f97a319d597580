-- Runs DBMS_RESOURCE_MANAGER.CALIBRATE_IO, and prints its result for `rigel import`:
--
--   sqlplus / as sysdba @calibrate_io.sql DISKS LATENCY_MS REPLACE > calibrate_io.txt
--
--   1  number of disks, such as 1; the procedure begins its search there
--   2  the greatest latency in ms; the procedure accepts 10 and more
--   3  REPLACE, exactly: the procedure replaces the calibration that the database has, and no call
--      brings it back. The optimizer may use it to choose degrees of parallelism
--
-- It takes 4 to 9 minutes at full load on all data files, and cannot be stopped by Ctrl-C: another
-- session can stop it by ALTER SYSTEM CANCEL SQL (18c and later), or by ending this session. Run it
-- only when nobody needs the storage, and never two at a time on one storage.
--
-- Right: SYSDBA by Oracle's documentation of the procedure, ADMINISTER RESOURCE MANAGER by that of the
-- package. In a pluggable database it may answer ORA-65040: then connect to the root.

SET ECHO OFF FEEDBACK OFF HEADING OFF PAGESIZE 0 LINESIZE 1000 TRIMOUT ON TAB OFF VERIFY OFF
SET SERVEROUTPUT ON SIZE UNLIMITED FORMAT TRUNCATED
WHENEVER SQLERROR EXIT FAILURE ROLLBACK
ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,';
DEFINE disks = &1
DEFINE latency_ms = &2
DEFINE word = &3

SELECT 'RIGEL|calibrate_io|spool|1|' || SYS_CONTEXT('USERENV', 'DB_NAME') || '|' || SYS_CONTEXT('USERENV', 'CON_NAME')
  FROM dual;
SELECT 'RIGEL|calibrate_io|asked|' || &disks || '|' || &latency_ms FROM dual;

-- The calibration that there is now. To have it back, insert this row into the table behind the view
-- by hand, as administrators of parallel servers do: Oracle has no procedure for it.
SELECT 'RIGEL|calibrate_io|old|' || TO_CHAR(start_time, 'YYYY-MM-DD"T"HH24:MI:SS') || '|'
    || TO_CHAR(end_time, 'YYYY-MM-DD"T"HH24:MI:SS') || '|' || max_iops || '|' || max_mbps || '|' || max_pmbps
    || '|' || latency || '|' || num_physical_disks
  FROM dba_rsrc_io_calibrate;

-- What must be so before: timed statistics, and asynchronous I/O for every data file.
SELECT 'RIGEL|calibrate_io|parameter|' || name || '|' || value FROM v$parameter
  WHERE name IN ('disk_asynch_io', 'filesystemio_options', 'timed_statistics', 'db_block_size', 'cluster_database');
SELECT 'RIGEL|calibrate_io|files|' || COUNT(*) || '|' || SUM(CASE WHEN i.asynch_io = 'ASYNC_ON' THEN 1 ELSE 0 END)
  FROM v$datafile f JOIN v$iostat_file i ON i.file_no = f.file# WHERE i.filetype_name = 'Data File';

DECLARE
  v_iops NUMBER;
  v_mbps NUMBER;
  v_latency NUMBER;
BEGIN
  IF '&word' <> 'REPLACE' THEN
    RAISE_APPLICATION_ERROR(-20003, 'the third argument must be REPLACE: the old calibration is lost');
  END IF;
  DBMS_RESOURCE_MANAGER.CALIBRATE_IO(
    num_physical_disks => &disks,
    max_latency => &latency_ms,
    max_iops => v_iops,
    max_mbps => v_mbps,
    actual_latency => v_latency);
  DBMS_OUTPUT.PUT_LINE('RIGEL|calibrate_io|returned|' || v_iops || '|' || v_mbps || '|' || v_latency);
END;
/
SELECT 'RIGEL|calibrate_io|status|' || status FROM v$io_calibration_status;
SELECT 'RIGEL|calibrate_io|row|' || TO_CHAR(start_time, 'YYYY-MM-DD"T"HH24:MI:SS') || '|'
    || TO_CHAR(end_time, 'YYYY-MM-DD"T"HH24:MI:SS') || '|' || max_iops || '|' || max_mbps || '|' || max_pmbps
    || '|' || latency || '|' || num_physical_disks
  FROM dba_rsrc_io_calibrate;
SELECT 'RIGEL|calibrate_io|end' FROM dual;
EXIT
