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

