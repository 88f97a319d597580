  g_scale INTEGER := 1;
  g_half INTEGER := 1;
  -- The key of the row at a place, both from 0: a permutation of all rows by four rounds of a Feistel
  -- network, so that neighbours by key are far apart. A place outside the table is permuted again.
  FUNCTION key_at(p_place INTEGER) RETURN INTEGER AS
    x INTEGER := p_place;
    l INTEGER;
    r INTEGER;
    t INTEGER;
  BEGIN
    LOOP
      l := FLOOR(x / g_half);
      r := MOD(x, g_half);
      FOR n IN 1 .. 4 LOOP
        t := MOD((r + n * 7919) * 48271, 2147483647);
        t := MOD(l + FLOOR(MOD(t * t, 2147483647) / 64), g_half);
        l := r;
        r := t;
      END LOOP;
      x := l * g_half + r;
      EXIT WHEN x < g_scale;
    END LOOP;
    RETURN x + 1;
  END;
