-- Shows that the tables are what the measurement needs. It reads all of them and changes nothing.
--
-- Of each table: rows and blocks must be the same number, and "most" must be 1: one row in a block.
-- "correlation" of key and place, over the first 100,000 keys, must be near 0: neighbours by key are
-- not neighbours on disk. The plan must be an INDEX RANGE SCAN followed by a TABLE ACCESS BY INDEX
-- ROWID, not BATCHED.

{{header}}
{{proofs}}
-- EXPLAIN PLAN writes to PLAN_TABLE, a temporary table of the session.
EXPLAIN PLAN SET STATEMENT_ID = 'rigel' FOR
  SELECT /*+ INDEX(b rigel_blocks_1_id) NO_BATCH_TABLE_ACCESS_BY_ROWID(b) */ COUNT(b.c2)
  FROM rigel_blocks_1 b WHERE b.id BETWEEN 1 AND {{read_rows}};
SELECT plan_table_output FROM TABLE(DBMS_XPLAN.DISPLAY('PLAN_TABLE', 'rigel', 'BASIC'));
ROLLBACK;
EXIT
