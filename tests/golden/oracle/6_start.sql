-- Prints the moment at which all sessions start, in microseconds since 1970 by the server's clock:
-- 10 s from now, so that all of them are connected before.
--   1  name of the run

SET ECHO OFF FEEDBACK OFF HEADING OFF PAGESIZE 0 LINESIZE 1000 TRIMOUT ON TAB OFF VERIFY OFF
SET SERVEROUTPUT ON SIZE UNLIMITED FORMAT TRUNCATED
WHENEVER SQLERROR EXIT FAILURE ROLLBACK
WHENEVER OSERROR EXIT FAILURE ROLLBACK
ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,';
EXECUTE DBMS_APPLICATION_INFO.SET_MODULE('rigel', 'start');

DEFINE run = &1
DECLARE
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

BEGIN
  DBMS_OUTPUT.PUT_LINE('RIGEL|&run|driver|start|' || (now_us() + 10 * 1000000));
END;
/
EXIT
