  g_scale INTEGER := {{scale}};
  g_read_rows INTEGER := {{read_rows}};
  g_update_rows INTEGER := {{update_rows}};
  g_scan_rows INTEGER := {{scan_blocks}};
  -- Shares are dealt from decks of this many cards, so that they are exact after every deck.
  g_update_share NUMBER(20,12) := {{update_share}};
  g_update_cards INTEGER := {{update_cards}};
  g_scan_share NUMBER(20,12) := {{scan_share}};
  g_scan_cards INTEGER := {{scan_cards}};
  -- Every nth operation goes to a window of the table; to the first table; is followed by a pause.
  -- 0 is never.
  g_hot_every INTEGER := {{hot_every}};
  g_hot_first INTEGER := {{hot_first}};
  g_hot_rows INTEGER := {{hot_rows}};
  g_first_table_every INTEGER := {{first_table_every}};
  g_think_every INTEGER := {{think_every}};
  g_think_min_ms INTEGER := {{think_min_ms}};
  g_think_max_ms INTEGER := {{think_max_ms}};

  g_one INTEGER := 1;
  g_two INTEGER := 1;
  g_session INTEGER := 1;
  g_text VARCHAR2(4000) := '';
  g_made INTEGER := 0;
  g_update_left INTEGER := 0;
  g_update_hits_left INTEGER := 0;
  g_update_dealt INTEGER := 0;
  g_update_hits INTEGER := 0;
  g_scan_left INTEGER := 0;
  g_scan_hits_left INTEGER := 0;
  g_scan_dealt INTEGER := 0;
  g_scan_hits INTEGER := 0;
  g_think_ms INTEGER := 0;
  -- The operation: its kind (1 read, 2 update, 3 scan), its keys, the rows that it must find, and
  -- those that it found.
  g_kind INTEGER := 1;
  g_of_first_table INTEGER := 0;
  g_first INTEGER := 1;
  g_last INTEGER := 1;
  g_rows INTEGER := 0;
  g_found INTEGER := 0;
  g_value VARCHAR2(128) := '';

  -- A random number from 0 to p_limit - 1: L'Ecuyer's two combined generators, whose period is 2.3E18.
  FUNCTION below(p_limit INTEGER) RETURN INTEGER AS
    z INTEGER;
  BEGIN
    g_one := MOD(40014 * g_one, 2147483563);
    g_two := MOD(40692 * g_two, 2147483399);
    z := g_one - g_two;
    IF z < 1 THEN
      z := z + 2147483562;
    END IF;
    RETURN LEAST(FLOOR((z - 1) * p_limit / 2147483562), p_limit - 1);
  END;

  -- Another session, or another seed, has other numbers.
  PROCEDURE begin_session(p_session INTEGER, p_seed INTEGER) AS
    n INTEGER;
  BEGIN
    g_session := p_session;
    g_one := 1 + MOD(p_session * 7919 + p_seed * 104729, 2147483562);
    g_two := 1 + MOD(p_session * 15485863 + p_seed, 2147483398);
    FOR i IN 1 .. 20 LOOP
      n := below(1000);
    END LOOP;
    FOR i IN 1 .. 2000 LOOP
      g_text := g_text || CHR(65 + below(26));
    END LOOP;
  END;

  -- 1 if the next operation is an update.
  FUNCTION deal_update RETURN INTEGER AS
    hit INTEGER := 0;
  BEGIN
    IF g_update_left = 0 THEN
      g_update_dealt := g_update_dealt + g_update_cards;
      g_update_left := g_update_cards;
      g_update_hits_left := ROUND(g_update_share * g_update_dealt) - g_update_hits;
      g_update_hits := g_update_hits + g_update_hits_left;
    END IF;
    IF below(g_update_left) < g_update_hits_left THEN
      hit := 1;
    END IF;
    g_update_left := g_update_left - 1;
    g_update_hits_left := g_update_hits_left - hit;
    RETURN hit;
  END;

  -- 1 if the next read is a scan.
  FUNCTION deal_scan RETURN INTEGER AS
    hit INTEGER := 0;
  BEGIN
    IF g_scan_left = 0 THEN
      g_scan_dealt := g_scan_dealt + g_scan_cards;
      g_scan_left := g_scan_cards;
      g_scan_hits_left := ROUND(g_scan_share * g_scan_dealt) - g_scan_hits;
      g_scan_hits := g_scan_hits + g_scan_hits_left;
    END IF;
    IF below(g_scan_left) < g_scan_hits_left THEN
      hit := 1;
    END IF;
    g_scan_left := g_scan_left - 1;
    g_scan_hits_left := g_scan_hits_left - hit;
    RETURN hit;
  END;

  -- The next operation: what, where, how many rows.
  PROCEDURE choose AS
    window_first INTEGER := 1;
    window_rows INTEGER := g_scale;
  BEGIN
    g_made := g_made + 1;
    g_of_first_table := 0;
    IF g_first_table_every > 0 AND MOD(g_made, GREATEST(g_first_table_every, 1)) = 0 THEN
      g_of_first_table := 1;
    END IF;
    IF deal_update() = 1 THEN
      g_kind := 2;
      g_rows := g_update_rows;
    ELSIF deal_scan() = 1 THEN
      g_kind := 3;
      g_rows := g_scan_rows;
    ELSE
      g_kind := 1;
      g_rows := g_read_rows;
    END IF;
    IF g_kind <> 3 THEN
      IF g_hot_every > 0 AND MOD(g_made, GREATEST(g_hot_every, 1)) = 0 THEN
        window_first := g_hot_first + 1;
        window_rows := g_hot_rows;
      END IF;
      g_first := window_first + below(window_rows - g_rows + 1);
      g_last := g_first + g_rows - 1;
    END IF;
    IF g_kind = 2 THEN
      -- A value that no row has: the database logs no change of a column to the same value.
      g_value := SUBSTR(g_text, 1 + below(1892), 108) || LPAD(g_session, 8, '0') || LPAD(g_made, 12, '0');
    END IF;
  END;

  -- Milliseconds to pause after this operation; 0 after most.
  FUNCTION think_ms RETURN INTEGER AS
  BEGIN
    g_think_ms := 0;
    IF g_think_every > 0 AND MOD(g_made, GREATEST(g_think_every, 1)) = 0 THEN
      g_think_ms := g_think_min_ms + below(g_think_max_ms - g_think_min_ms + 1);
    END IF;
    RETURN g_think_ms;
  END;

  -- Carries the operation out. An update is committed, and the commit is waited for.
  PROCEDURE carry_out AS
  BEGIN
    g_found := 0;
    IF g_kind = 2 AND g_of_first_table = 1 THEN
      UPDATE rigel_blocks_1 b SET {{changes}}
        WHERE b.id BETWEEN g_first AND g_last;
      g_found := SQL%ROWCOUNT;
      COMMIT WRITE IMMEDIATE WAIT;
    ELSIF g_kind = 2 THEN
      UPDATE rigel_blocks_&table_number b SET {{changes}}
        WHERE b.id BETWEEN g_first AND g_last;
      g_found := SQL%ROWCOUNT;
      COMMIT WRITE IMMEDIATE WAIT;
    ELSIF g_kind = 3 AND g_of_first_table = 1 THEN
      SELECT /*+ FULL(s) NO_PARALLEL(s) */ COUNT(s.c2) INTO g_found FROM rigel_scan_1 s;
    ELSIF g_kind = 3 THEN
      SELECT /*+ FULL(s) NO_PARALLEL(s) */ COUNT(s.c2) INTO g_found FROM rigel_scan_&table_number s;
    ELSIF g_of_first_table = 1 THEN
      SELECT /*+ INDEX(b rigel_blocks_1_id) NO_BATCH_TABLE_ACCESS_BY_ROWID(b) */ COUNT(b.c2) INTO g_found
        FROM rigel_blocks_1 b WHERE b.id BETWEEN g_first AND g_last;
    ELSE
      SELECT /*+ INDEX(b rigel_blocks_&table_number._id) NO_BATCH_TABLE_ACCESS_BY_ROWID(b) */ COUNT(b.c2)
        INTO g_found FROM rigel_blocks_&table_number b WHERE b.id BETWEEN g_first AND g_last;
    END IF;
  END;
