-- The server's own figures at one moment. run.sh takes them twice, inside the time in which all
-- sessions work: their difference is what the server did. It reads views, and changes nothing.
-- Nothing of the Diagnostics Pack is read: no AWR, no ASH.
--   1  name of the run
--   2  before, or after
--   3  the moment, in microseconds since 1970; 0 is now

{{header}}
DEFINE run = &1
DEFINE moment = &2
DEFINE at_us = &3

DECLARE
  c_run CONSTANT VARCHAR2(60) := '&run';
  c_who CONSTANT VARCHAR2(20) := '&moment';

{{clock}}{{figures_of}}BEGIN
  IF c_who = 'before' THEN
    put('who|db_name|' || SYS_CONTEXT('USERENV', 'DB_NAME'));
    put('who|container|' || SYS_CONTEXT('USERENV', 'CON_NAME'));
    put('who|service|' || SYS_CONTEXT('USERENV', 'SERVICE_NAME'));
    put_all('product_component_version',
      'SELECT ''who|release|'' || version FROM product_component_version WHERE LOWER(product) LIKE ''oracle%''');
    put_all('v$instance',
      'SELECT ''who|instance|'' || instance_name || ''|'' || instance_number || ''|'' || host_name FROM v$instance');
    put_all('v$database',
      'SELECT ''who|log_mode|'' || log_mode || ''|'' || force_logging FROM v$database');
    put_all('user_tablespaces',
      'SELECT ''who|block_bytes|'' || block_size FROM user_tablespaces WHERE tablespace_name = '
      || '(SELECT tablespace_name FROM user_tables WHERE table_name = ''RIGEL_BLOCKS_1'')');
    put_all('v$parameter',
      'SELECT ''parameter|'' || name || ''|'' || value FROM v$parameter WHERE name IN (''commit_logging'', '
      || '''commit_wait'', ''db_block_size'', ''db_cache_size'', ''db_file_multiblock_read_count'', '
      || '''disk_asynch_io'', ''filesystemio_options'', ''max_iops'', ''max_mbps'', ''sga_target'', '
      || '''timed_statistics'') ORDER BY name');
    put_all('v$sgainfo',
      'SELECT ''parameter|Buffer Cache Size|'' || bytes FROM v$sgainfo WHERE name = ''Buffer Cache Size''');
  END IF;
  pause((&at_us - now_us()) / 1000000);
  put('moment|' || now_us());
  put_all('v$sysstat',
    'SELECT ''statistic|'' || name || ''|'' || value FROM v$sysstat WHERE name IN ({{statistics}}) ORDER BY name');
  put_all('v$system_event',
    'SELECT ''wait|'' || event || ''|'' || wait_class || ''|'' || total_waits || ''|'' || time_waited_micro '
    || 'FROM v$system_event WHERE wait_class <> ''Idle'' ORDER BY event');
  put_all('v$event_histogram_micro',
    'SELECT ''histogram|'' || event || ''|'' || wait_time_micro || ''|'' || wait_count '
    || 'FROM v$event_histogram_micro WHERE event IN (''cell single block physical read'', '
    || '''db file parallel read'', ''db file parallel write'', ''db file scattered read'', '
    || '''db file sequential read'', ''direct path read'', ''log file parallel write'', ''log file sync'') '
    || 'ORDER BY event, wait_time_micro');
  put_all('v$sys_time_model',
    'SELECT ''time|'' || stat_name || ''|'' || value FROM v$sys_time_model '
    || 'WHERE stat_name IN (''DB time'', ''DB CPU'', ''background cpu time'') ORDER BY stat_name');
  put_all('v$osstat',
    'SELECT ''host|'' || stat_name || ''|'' || value FROM v$osstat WHERE stat_name IN (''NUM_CPUS'', '
    || '''NUM_CPU_CORES'', ''BUSY_TIME'', ''IDLE_TIME'', ''USER_TIME'', ''SYS_TIME'', ''IOWAIT_TIME'', '
    || '''PHYSICAL_MEMORY_BYTES'') ORDER BY stat_name');
  put_all('v$iostat_function',
    'SELECT ''function|'' || function_name || ''|'' || (small_read_reqs + large_read_reqs) || ''|'' '
    || '|| (small_read_megabytes + large_read_megabytes) || ''|'' || (small_write_reqs + large_write_reqs) '
    || '|| ''|'' || (small_write_megabytes + large_write_megabytes) || ''|'' || number_of_waits || ''|'' '
    || '|| wait_time FROM v$iostat_function ORDER BY function_name');
  put('taken|' || now_us());
END;
/
EXIT
