SELECT 'RIGEL|{{table}}|correlation ' || TO_CHAR(CORR(id, place), 'FM0.0000')
  FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY rowid) AS place FROM {{table}} WHERE id <= 100000);
