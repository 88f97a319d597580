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

