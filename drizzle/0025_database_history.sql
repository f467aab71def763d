-- What a look at the database's history takes: its identity, and how much of its log is safely written, in bytes, which
-- never becomes less. A standby says neither: it goes by what its primary has written, and its own place in the log is
-- behind. Some hosted servers keep the second to themselves.
CREATE FUNCTION database_history(OUT identity text, OUT written bigint) LANGUAGE plpgsql AS $$
BEGIN
  IF pg_is_in_recovery() THEN RETURN; END IF;
  identity := database_identity();
  BEGIN
    written := pg_current_wal_flush_lsn() - '0/0';
  EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN NULL;
  END;
END
$$;
