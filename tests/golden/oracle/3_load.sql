-- One of 2 loading sessions of one table, which run.sh starts together.
--   1  number of this session, from 1
--   2  the table
--
-- Every session takes one of 2 chunks of 10000 rows, in turn. The rows of a chunk and its note in
-- RIGEL_CHUNKS are committed together, so a load that was stopped can be started again: a chunk that
-- has a note is not loaded twice.

SET ECHO OFF FEEDBACK OFF HEADING OFF PAGESIZE 0 LINESIZE 1000 TRIMOUT ON TAB OFF VERIFY OFF
SET SERVEROUTPUT ON SIZE UNLIMITED FORMAT TRUNCATED
WHENEVER SQLERROR EXIT FAILURE ROLLBACK
WHENEVER OSERROR EXIT FAILURE ROLLBACK
ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,';
EXECUTE DBMS_APPLICATION_INFO.SET_MODULE('rigel', 'load');

DEFINE job = &1
DEFINE table_name = &2

DECLARE
  c_job CONSTANT INTEGER := &job;
  c_jobs CONSTANT INTEGER := 2;
  c_chunk_rows CONSTANT INTEGER := 10000;
  -- Rows in one statement.
  c_array_rows CONSTANT INTEGER := 200;
  TYPE t_ids IS TABLE OF NUMBER(15) INDEX BY PLS_INTEGER;
  v_ids t_ids;
  v_rows INTEGER;
  v_known INTEGER;
  v_first INTEGER;
  v_next INTEGER;
  -- The order of keys: begin
  g_scale INTEGER := 1;
  g_half INTEGER := 1;
  -- The key of the row at a place, both from 0: a permutation of all rows by four rounds of a Feistel
  -- network, so that neighbours by key are far apart. A place outside the table is permuted again.
  FUNCTION key_at(p_place INTEGER) RETURN INTEGER AS
    x INTEGER := p_place;
    l INTEGER;
    r INTEGER;
    t INTEGER;
  BEGIN
    LOOP
      l := FLOOR(x / g_half);
      r := MOD(x, g_half);
      FOR n IN 1 .. 4 LOOP
        t := MOD((r + n * 7919) * 48271, 2147483647);
        t := MOD(l + FLOOR(MOD(t * t, 2147483647) / 64), g_half);
        l := r;
        r := t;
      END LOOP;
      x := l * g_half + r;
      EXIT WHEN x < g_scale;
    END LOOP;
    RETURN x + 1;
  END;
  -- The order of keys: end
BEGIN
  SELECT rows_wanted INTO v_rows FROM rigel_manifest WHERE table_name = UPPER('&table_name');
  g_scale := v_rows;
  g_half := CEIL(SQRT(v_rows));
  FOR v_chunk IN 0 .. CEIL(v_rows / c_chunk_rows) - 1 LOOP
    v_first := v_chunk * c_chunk_rows;
    v_next := LEAST(v_first + c_chunk_rows, v_rows);
    SELECT COUNT(*) INTO v_known FROM rigel_chunks
      WHERE table_name = UPPER('&table_name') AND first_place = v_first;
    IF MOD(v_chunk, c_jobs) = c_job - 1 AND v_known = 0 THEN
      v_ids.DELETE;
      FOR v_place IN v_first .. v_next - 1 LOOP
        v_ids(v_ids.COUNT + 1) := key_at(v_place);
        IF v_ids.COUNT = c_array_rows OR v_place = v_next - 1 THEN
          FORALL n IN 1 .. v_ids.COUNT
            INSERT INTO &table_name VALUES (
              v_ids(n),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/1', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/2', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/3', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/4', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/5', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/6', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/7', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/8', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/9', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/10', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/11', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/12', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/13', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/14', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/15', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/16', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/17', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/18', 'SHA512')),
              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/19', 'SHA512')));
          v_ids.DELETE;
        END IF;
      END LOOP;
      INSERT INTO rigel_chunks (table_name, first_place) VALUES (UPPER('&table_name'), v_first);
      COMMIT WRITE IMMEDIATE WAIT;
    END IF;
  END LOOP;
END;
/
PROMPT RIGEL: &table_name, loading session &job is done
EXIT
