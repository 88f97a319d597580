SELECT 'RIGEL|{{table}}|rows ' || SUM(n) || '|blocks ' || COUNT(*) || '|most ' || MAX(n)
  FROM (SELECT COUNT(*) AS n FROM {{table}} GROUP BY SUBSTR(ROWIDTOCHAR(rowid), 1, 15));
