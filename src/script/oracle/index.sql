CREATE UNIQUE INDEX {{table}}_id ON {{table}} (id) PCTFREE 0 NOPARALLEL{{tablespace}};
BEGIN
  DBMS_STATS.GATHER_TABLE_STATS(USER, '{{TABLE}}', method_opt => 'FOR ALL COLUMNS SIZE 1', cascade => TRUE, no_invalidate => FALSE);
  DBMS_STATS.LOCK_TABLE_STATS(USER, '{{TABLE}}');
END;
/
