-- Creates the tables: {{schemas}} of {{scale}} rows, one row in each block, and as many to be scanned, of
-- {{scan_blocks}} rows. All are in the schema of the user who runs this, all names begin with RIGEL_.
--
-- A name that is taken stops the script, and nothing is changed. What it made, 9_drop.sql removes.

{{header}}
-- Not in the root of a container database, and not on a standby.
DECLARE
  v_container VARCHAR2(128) := SYS_CONTEXT('USERENV', 'CON_NAME');
  v_role VARCHAR2(128) := SYS_CONTEXT('USERENV', 'DATABASE_ROLE');
BEGIN
  IF v_container = 'CDB$ROOT' THEN
    RAISE_APPLICATION_ERROR(-20001, 'this is the root of a container database: connect to a pluggable database');
  END IF;
  IF v_role <> 'PRIMARY' THEN
    RAISE_APPLICATION_ERROR(-20002, 'the role of this database is ' || v_role || ': it cannot be loaded');
  END IF;
END;
/

-- One load has one identifier. The comment of every table carries it, and 9_drop.sql removes only
-- tables that carry it.
COLUMN load_id NEW_VALUE load_id
SELECT LOWER(SUBSTR(RAWTOHEX(SYS_GUID()), 1, 16)) AS load_id FROM dual;

CREATE TABLE rigel_manifest (
  load_id VARCHAR2(16 BYTE) NOT NULL,
  table_name VARCHAR2(30 BYTE) NOT NULL PRIMARY KEY,
  rows_wanted NUMBER(15) NOT NULL
);
COMMENT ON TABLE rigel_manifest IS 'rigel load &load_id';
CREATE TABLE rigel_chunks (
  table_name VARCHAR2(30 BYTE) NOT NULL,
  first_place NUMBER(15) NOT NULL,
  CONSTRAINT rigel_chunks_key PRIMARY KEY (table_name, first_place)
);
COMMENT ON TABLE rigel_chunks IS 'rigel load &load_id';

{{tables}}
COMMIT;
PROMPT RIGEL: tables created, load &load_id
EXIT
