-- Indexes on the keys, and statistics of the tables, which are then locked: no job gathers others.

{{header}}
{{indexes}}
EXIT
