-- Roles are server-wide: another database of the same server, or another migration at this very moment, may have
-- made them already.
DO $$
DECLARE
  wanted text;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['fleetbook_worker', 'fleetbook_reader'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN NOBYPASSRLS', wanted);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
      END;
    END IF;
    -- The connecting user takes one of these roles at connection time (src/db/connect.ts). Since PostgreSQL 16
    -- a user that is no superuser becomes a member of the roles that it creates, but one that may not take them.
    IF NOT pg_has_role(current_user, wanted,
                       CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END) THEN
      BEGIN
        EXECUTE format('GRANT %I TO %I', wanted, current_user);
      EXCEPTION WHEN unique_violation THEN NULL;
      END;
    END IF;
  END LOOP;
END
$$;
--> statement-breakpoint
GRANT USAGE ON SCHEMA public TO fleetbook_worker, fleetbook_reader;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO fleetbook_worker;
--> statement-breakpoint
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO fleetbook_worker;
--> statement-breakpoint
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO fleetbook_worker;
--> statement-breakpoint
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO fleetbook_worker;
--> statement-breakpoint
-- The reader sees what a snapshot is built from and nothing else; tokens only through authenticate_token().
GRANT SELECT ON lineage, providers, regions, machines, machine_prices, organizations, users, disk_types, clusters, disks
  TO fleetbook_reader;
--> statement-breakpoint
GRANT SELECT (id, kind, verified_at) ON sources TO fleetbook_reader;
--> statement-breakpoint
-- The organization of the current transaction. After a set_config(…, true) has ended the setting reads '' and not
-- NULL, hence nullif; null matches no row at all.
CREATE FUNCTION current_organization() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('app.org_id', true), '')::integer;
--> statement-breakpoint
DO $$
DECLARE
  scoped text;
BEGIN
  FOREACH scoped IN ARRAY ARRAY['users', 'disk_types', 'clusters', 'disks'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', scoped);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', scoped);
    EXECUTE format('CREATE POLICY worker_sees_all ON %I TO fleetbook_worker USING (true) WITH CHECK (true)', scoped);
    -- In a sub-select the function is called once a query, and the index on organization_id stays usable.
    EXECUTE format('CREATE POLICY reader_sees_its_organization ON %I FOR SELECT TO fleetbook_reader
      USING (organization_id = (SELECT current_organization()))', scoped);
  END LOOP;
END
$$;
--> statement-breakpoint
ALTER TABLE organizations ENABLE ROW LEVEL SECURITY;
--> statement-breakpoint
ALTER TABLE organizations FORCE ROW LEVEL SECURITY;
--> statement-breakpoint
CREATE POLICY worker_sees_all ON organizations TO fleetbook_worker USING (true) WITH CHECK (true);
--> statement-breakpoint
CREATE POLICY reader_sees_its_organization ON organizations FOR SELECT TO fleetbook_reader
  USING (id = (SELECT current_organization()));
--> statement-breakpoint
ALTER TABLE regions ENABLE ROW LEVEL SECURITY;
--> statement-breakpoint
ALTER TABLE regions FORCE ROW LEVEL SECURITY;
--> statement-breakpoint
CREATE POLICY worker_sees_all ON regions TO fleetbook_worker USING (true) WITH CHECK (true);
--> statement-breakpoint
-- A region that no catalogue lists belongs to the organization whose clusters named it.
CREATE POLICY reader_sees_listed_and_its_own ON regions FOR SELECT TO fleetbook_reader
  USING (organization_id IS NULL OR organization_id = (SELECT current_organization()));
--> statement-breakpoint
ALTER TABLE tokens ENABLE ROW LEVEL SECURITY;
--> statement-breakpoint
ALTER TABLE tokens FORCE ROW LEVEL SECURITY;
--> statement-breakpoint
CREATE POLICY worker_sees_all ON tokens TO fleetbook_worker USING (true) WITH CHECK (true);
--> statement-breakpoint
-- authenticate_token() runs as the owner, whom FORCE would otherwise keep out.
CREATE POLICY owner_looks_up_tokens ON tokens FOR SELECT TO CURRENT_USER USING (true);
--> statement-breakpoint
CREATE POLICY owner_looks_up_organizations ON organizations FOR SELECT TO CURRENT_USER USING (true);
--> statement-breakpoint
-- The one way from a token to its organization: by the whole hash, so nobody can list what exists.
CREATE FUNCTION authenticate_token(wanted bytea)
  RETURNS TABLE (id integer, organization_id integer, scopes text[], expires_at timestamptz, revoked boolean, version bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public
  BEGIN ATOMIC
    SELECT t.id, t.organization_id, t.scopes, t.expires_at,
           t.revoked_at IS NOT NULL OR o.deleted_at IS NOT NULL, t.version
    FROM tokens t JOIN organizations o ON o.id = t.organization_id
    WHERE t.hash = wanted;
  END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION authenticate_token(bytea) FROM PUBLIC;
--> statement-breakpoint
GRANT EXECUTE ON FUNCTION authenticate_token(bytea) TO fleetbook_reader, fleetbook_worker;
--> statement-breakpoint
INSERT INTO lineage DEFAULT VALUES;
