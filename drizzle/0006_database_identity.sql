ALTER TABLE "lineage" ADD COLUMN "database_identity" text;
--> statement-breakpoint
-- Says something else in every copy and restored backup: the cluster, its timeline (another one after a recovery to a
-- point in time or a failover), the database and the table. A copy of the files alone says the same. Some hosted servers
-- keep the first two to themselves.
CREATE FUNCTION database_identity() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  cluster text := '-';
  timeline text := '-';
BEGIN
  BEGIN
    SELECT system_identifier::text INTO cluster FROM pg_control_system();
  EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN NULL;
  END;
  BEGIN
    timeline := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
  EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN NULL;
  END;
  RETURN concat_ws(' ', cluster, timeline, (SELECT oid FROM pg_database WHERE datname = current_database()),
    'lineage'::regclass::oid);
END
$$;
