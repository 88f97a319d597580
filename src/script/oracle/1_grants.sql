-- Rights of the user that owns the tables. To be run by a DBA, once: read it, change it, or do the
-- same in another way. run.sh never runs this file.
--
--   sqlplus / as sysdba @1_grants.sql USER TABLESPACE
--
-- The user must exist, in a pluggable database and not in its root. No role is needed, no ALTER
-- SYSTEM, no package of the Diagnostics Pack.

SET VERIFY OFF
WHENEVER SQLERROR EXIT FAILURE
DEFINE rigel_user = &1
DEFINE rigel_tablespace = &2

-- What is needed to load and to run: {{data_gib}} GiB for the tables, and a tenth more for indexes.
GRANT CREATE SESSION, CREATE TABLE TO &rigel_user;
ALTER USER &rigel_user QUOTA {{quota_mib}}M ON &rigel_tablespace;

-- What is needed to read the server's own figures. Without one of these, the figure is reported as
-- unknown, and the run goes on. SELECT_CATALOG_ROLE contains all of them.
GRANT SELECT ON v_$mystat TO &rigel_user;
GRANT SELECT ON v_$statname TO &rigel_user;
GRANT SELECT ON v_$session_event TO &rigel_user;
GRANT SELECT ON v_$sysstat TO &rigel_user;
GRANT SELECT ON v_$system_event TO &rigel_user;
GRANT SELECT ON v_$event_histogram_micro TO &rigel_user;
GRANT SELECT ON v_$sys_time_model TO &rigel_user;
GRANT SELECT ON v_$osstat TO &rigel_user;
GRANT SELECT ON v_$iostat_function TO &rigel_user;
GRANT SELECT ON v_$parameter TO &rigel_user;
GRANT SELECT ON v_$sgainfo TO &rigel_user;
GRANT SELECT ON v_$instance TO &rigel_user;
GRANT SELECT ON v_$database TO &rigel_user;

-- Before release 18 a session can wait only by DBMS_LOCK. From 18 on this line is not needed.
-- GRANT EXECUTE ON dbms_lock TO &rigel_user;

EXIT
