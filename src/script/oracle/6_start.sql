-- Prints the moment at which all sessions start, in microseconds since 1970 by the server's clock:
-- {{lead_s}} s from now, so that all of them are connected before.
--   1  name of the run

{{header}}
DEFINE run = &1
DECLARE
{{clock}}BEGIN
  DBMS_OUTPUT.PUT_LINE('RIGEL|&run|driver|start|' || (now_us() + {{lead_s}} * 1000000));
END;
/
EXIT
