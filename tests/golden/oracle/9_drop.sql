-- Removes what 2_create.sql made, and nothing else: only tables that the manifest names and whose
-- comment carries the identifier of the load. No user, no tablespace, no role. Every statement is
-- printed before it runs.

SET ECHO OFF FEEDBACK OFF HEADING OFF PAGESIZE 0 LINESIZE 1000 TRIMOUT ON TAB OFF VERIFY OFF
SET SERVEROUTPUT ON SIZE UNLIMITED FORMAT TRUNCATED
WHENEVER SQLERROR EXIT FAILURE ROLLBACK
WHENEVER OSERROR EXIT FAILURE ROLLBACK
ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,';
EXECUTE DBMS_APPLICATION_INFO.SET_MODULE('rigel', 'drop');

DECLARE
  v_load_id VARCHAR2(16);
  v_left INTEGER := 0;

  PROCEDURE drop_table(p_name VARCHAR2) IS
    v_comment VARCHAR2(4000);
    v_statement VARCHAR2(200) := 'DROP TABLE ' || p_name || ' PURGE';
  BEGIN
    SELECT MAX(comments) INTO v_comment FROM user_tab_comments WHERE table_name = p_name;
    IF v_comment = 'rigel load ' || v_load_id THEN
      DBMS_OUTPUT.PUT_LINE(v_statement);
      EXECUTE IMMEDIATE v_statement;
    END IF;
  END;

BEGIN
  SELECT MAX(load_id) INTO v_load_id FROM rigel_manifest;
  FOR v_table IN (SELECT table_name FROM rigel_manifest ORDER BY table_name) LOOP
    drop_table(v_table.table_name);
  END LOOP;
  drop_table('RIGEL_CHUNKS');
  -- An empty manifest has no identifier: 2_create.sql was stopped before its first table.
  IF v_load_id IS NULL THEN
    SELECT MAX(SUBSTR(comments, 12)) INTO v_load_id FROM user_tab_comments
      WHERE table_name = 'RIGEL_MANIFEST' AND comments LIKE 'rigel load %';
    drop_table('RIGEL_CHUNKS');
  END IF;
  drop_table('RIGEL_MANIFEST');
  FOR v_object IN (SELECT object_type, object_name FROM user_objects WHERE object_name LIKE 'RIGEL\_%' ESCAPE '\') LOOP
    DBMS_OUTPUT.PUT_LINE('left, because it does not carry the identifier of the load: '
      || v_object.object_type || ' ' || v_object.object_name);
    v_left := v_left + 1;
  END LOOP;
  DBMS_OUTPUT.PUT_LINE('objects left whose name begins with RIGEL_: ' || v_left);
END;
/
EXIT
