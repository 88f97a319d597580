-- Shows that the tables are what the measurement needs. It reads all of them and changes nothing.
--
-- Of each table: rows and blocks must be the same number, and "most" must be 1: one row in a block.
-- "correlation" of key and place, over the first 100,000 keys, must be near 0: neighbours by key are
-- not neighbours on disk. The plan must be an INDEX RANGE SCAN followed by a TABLE ACCESS BY INDEX
-- ROWID, not BATCHED.

SET ECHO OFF FEEDBACK OFF HEADING OFF PAGESIZE 0 LINESIZE 1000 TRIMOUT ON TAB OFF VERIFY OFF
SET SERVEROUTPUT ON SIZE UNLIMITED FORMAT TRUNCATED
WHENEVER SQLERROR EXIT FAILURE ROLLBACK
WHENEVER OSERROR EXIT FAILURE ROLLBACK
ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,';
EXECUTE DBMS_APPLICATION_INFO.SET_MODULE('rigel', 'proof');

SELECT 'RIGEL|rigel_blocks_1|rows ' || SUM(n) || '|blocks ' || COUNT(*) || '|most ' || MAX(n)
  FROM (SELECT COUNT(*) AS n FROM rigel_blocks_1 GROUP BY SUBSTR(ROWIDTOCHAR(rowid), 1, 15));
SELECT 'RIGEL|rigel_blocks_2|rows ' || SUM(n) || '|blocks ' || COUNT(*) || '|most ' || MAX(n)
  FROM (SELECT COUNT(*) AS n FROM rigel_blocks_2 GROUP BY SUBSTR(ROWIDTOCHAR(rowid), 1, 15));
SELECT 'RIGEL|rigel_scan_1|rows ' || SUM(n) || '|blocks ' || COUNT(*) || '|most ' || MAX(n)
  FROM (SELECT COUNT(*) AS n FROM rigel_scan_1 GROUP BY SUBSTR(ROWIDTOCHAR(rowid), 1, 15));
SELECT 'RIGEL|rigel_scan_2|rows ' || SUM(n) || '|blocks ' || COUNT(*) || '|most ' || MAX(n)
  FROM (SELECT COUNT(*) AS n FROM rigel_scan_2 GROUP BY SUBSTR(ROWIDTOCHAR(rowid), 1, 15));
SELECT 'RIGEL|rigel_blocks_1|correlation ' || TO_CHAR(CORR(id, place), 'FM0.0000')
  FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY rowid) AS place FROM rigel_blocks_1 WHERE id <= 100000);
SELECT 'RIGEL|rigel_blocks_2|correlation ' || TO_CHAR(CORR(id, place), 'FM0.0000')
  FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY rowid) AS place FROM rigel_blocks_2 WHERE id <= 100000);

-- EXPLAIN PLAN writes to PLAN_TABLE, a temporary table of the session.
EXPLAIN PLAN SET STATEMENT_ID = 'rigel' FOR
  SELECT /*+ INDEX(b rigel_blocks_1_id) NO_BATCH_TABLE_ACCESS_BY_ROWID(b) */ COUNT(b.c2)
  FROM rigel_blocks_1 b WHERE b.id BETWEEN 1 AND 64;
SELECT plan_table_output FROM TABLE(DBMS_XPLAN.DISPLAY('PLAN_TABLE', 'rigel', 'BASIC'));
ROLLBACK;
EXIT
