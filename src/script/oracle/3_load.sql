-- One of {{degree}} loading sessions of one table, which run.sh starts together.
--   1  number of this session, from 1
--   2  the table
--
-- Every session takes one of {{degree}} chunks of {{chunk_rows}} rows, in turn. The rows of a chunk and its note in
-- RIGEL_CHUNKS are committed together, so a load that was stopped can be started again: a chunk that
-- has a note is not loaded twice.

{{header}}
DEFINE job = &1
DEFINE table_name = &2

DECLARE
  c_job CONSTANT INTEGER := &job;
  c_jobs CONSTANT INTEGER := {{degree}};
  c_chunk_rows CONSTANT INTEGER := {{chunk_rows}};
  -- Rows in one statement.
  c_array_rows CONSTANT INTEGER := 200;
  TYPE t_ids IS TABLE OF NUMBER(15) INDEX BY PLS_INTEGER;
  v_ids t_ids;
  v_rows INTEGER;
  v_known INTEGER;
  v_first INTEGER;
  v_next INTEGER;
  -- The order of keys: begin
{{keys}}  -- The order of keys: end
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
{{values}});
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
