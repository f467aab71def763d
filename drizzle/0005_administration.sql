ALTER TABLE "users" ADD COLUMN "replaced_by" integer;--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_organization_id_replaced_by_users_organization_id_id_fk" FOREIGN KEY ("organization_id","replaced_by") REFERENCES "public"."users"("organization_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "users_replaced" ON "users" USING btree ("replaced_by") WHERE replaced_by is not null;--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_replace_others" CHECK ("users"."replaced_by" <> "users"."id");
--> statement-breakpoint
-- A cluster never names somebody whom an operator renamed or deleted, whatever name its control plane says.
CREATE FUNCTION follow_replaced_users() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- The trigger fires for its own update too, and then finds nobody.
  IF EXISTS (
    SELECT FROM users u JOIN written w ON w.organization_id = u.organization_id AND w.user_id = u.id
    WHERE u.replaced_by IS NOT NULL
  ) THEN
    UPDATE clusters c SET user_id = u.replaced_by
    FROM written w JOIN users u ON u.organization_id = w.organization_id AND u.id = w.user_id
    WHERE u.replaced_by IS NOT NULL AND c.id = w.id;
  END IF;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER inserted_clusters_follow AFTER INSERT ON clusters REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION follow_replaced_users();
--> statement-breakpoint
CREATE TRIGGER updated_clusters_follow AFTER UPDATE ON clusters REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION follow_replaced_users();
--> statement-breakpoint
CREATE POLICY owner_notes_token_use ON tokens FOR UPDATE TO CURRENT_USER USING (true) WITH CHECK (true);
--> statement-breakpoint
-- The one thing that a reader writes: when tokens were last used, in whole minutes, never back and never ahead of the
-- clock. It is part of no document, hence no new version. A row that somebody else holds is passed over, so that nobody
-- ever waits for this: it is another reader that notes the same, or an operator, after whom the next use is noted.
CREATE FUNCTION note_token_use(used integer[], used_at timestamptz[]) RETURNS void
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public
  BEGIN ATOMIC
    UPDATE tokens SET last_used_at = noted.at
    FROM (
      SELECT t.id, date_trunc('minute', least(u.at, now())) AS at
      FROM unnest(used, used_at) u (id, at) JOIN tokens t ON t.id = u.id
      WHERE t.last_used_at IS NULL OR t.last_used_at < date_trunc('minute', least(u.at, now()))
      FOR NO KEY UPDATE OF t SKIP LOCKED
    ) noted
    WHERE tokens.id = noted.id;
  END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION note_token_use(integer[], timestamptz[]) FROM PUBLIC;
--> statement-breakpoint
GRANT EXECUTE ON FUNCTION note_token_use(integer[], timestamptz[]) TO fleetbook_reader, fleetbook_worker;
--> statement-breakpoint
-- What only clusters name is their organizations' too: machine types that no catalogue lists, and providers.
DO $$
DECLARE
  shared text;
BEGIN
  FOREACH shared IN ARRAY ARRAY['machines', 'providers'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', shared);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', shared);
    EXECUTE format('CREATE POLICY worker_sees_all ON %I TO fleetbook_worker USING (true) WITH CHECK (true)', shared);
  END LOOP;
END
$$;
--> statement-breakpoint
-- The sub-selects see what the policies of clusters and regions leave.
CREATE POLICY reader_sees_listed_and_its_own ON machines FOR SELECT TO fleetbook_reader
  USING (excluded_reason IS DISTINCT FROM 'unlisted' OR id IN (SELECT machine_id FROM clusters));
--> statement-breakpoint
CREATE POLICY reader_sees_listed_and_its_own ON providers FOR SELECT TO fleetbook_reader
  USING (listed OR EXISTS (SELECT FROM regions r WHERE r.provider_id = providers.id));
