CREATE TABLE "cluster_slugs" (
	"organization_id" integer NOT NULL,
	"slug" text NOT NULL,
	CONSTRAINT "cluster_slugs_organization_id_slug_pk" PRIMARY KEY("organization_id","slug")
);
--> statement-breakpoint
CREATE TABLE "feed_changes" (
	"last" bigint PRIMARY KEY NOT NULL,
	"count" integer NOT NULL,
	"at" timestamp(6) with time zone NOT NULL,
	"organization_id" integer,
	"region_id" integer,
	"kinds" text[] NOT NULL,
	"machine_ids" integer[],
	"before" numeric[],
	"after" numeric[],
	"slugs" text[]
);
--> statement-breakpoint
CREATE TABLE "feed_head" (
	"singleton" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"position" bigint DEFAULT 0 NOT NULL,
	"pruned" bigint DEFAULT 0 NOT NULL,
	"currency" text,
	CONSTRAINT "feed_head_has_one_row" CHECK ("feed_head"."singleton")
);
--> statement-breakpoint
CREATE TABLE "told_clusters" (
	"organization_id" integer PRIMARY KEY NOT NULL,
	"slugs" text[] NOT NULL,
	"hashes" bigint[] NOT NULL
);
--> statement-breakpoint
CREATE TABLE "told_regions" (
	"region_id" integer PRIMARY KEY NOT NULL,
	"currency" text,
	"machine_ids" integer[] NOT NULL,
	"hashes" bigint[] NOT NULL,
	"prices" numeric[] NOT NULL
);
--> statement-breakpoint
ALTER TABLE "regions" ADD COLUMN "told_version" bigint DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "organizations" ADD COLUMN "told_version" bigint DEFAULT 1 NOT NULL;--> statement-breakpoint
CREATE INDEX "feed_changes_by_organization" ON "feed_changes" USING btree ("organization_id","last");--> statement-breakpoint
CREATE INDEX "feed_changes_by_time" ON "feed_changes" USING btree ("at");--> statement-breakpoint
CREATE INDEX "regions_untold" ON "regions" USING btree ("id") WHERE told_version < version;--> statement-breakpoint
CREATE INDEX "organizations_untold" ON "organizations" USING btree ("id") WHERE told_version < clusters_version;
--> statement-breakpoint
-- Nobody has followed the feed yet: what there is is told as new.
UPDATE regions SET told_version = version - 1;
--> statement-breakpoint
UPDATE organizations SET told_version = clusters_version - 1;
--> statement-breakpoint
INSERT INTO feed_head DEFAULT VALUES;
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE, DELETE ON feed_head, feed_changes, told_regions, told_clusters TO fleetbook_worker;
--> statement-breakpoint
GRANT SELECT ON feed_head, feed_changes TO fleetbook_reader;
--> statement-breakpoint
-- What was told last is the workers' business: readers see none of it.
REVOKE ALL ON told_regions, told_clusters FROM fleetbook_reader;
--> statement-breakpoint
ALTER TABLE feed_changes ENABLE ROW LEVEL SECURITY;
--> statement-breakpoint
ALTER TABLE feed_changes FORCE ROW LEVEL SECURITY;
--> statement-breakpoint
CREATE POLICY worker_sees_all ON feed_changes TO fleetbook_worker USING (true) WITH CHECK (true);
--> statement-breakpoint
CREATE POLICY reader_sees_everybodys_and_its_own ON feed_changes FOR SELECT TO fleetbook_reader
  USING (organization_id IS NULL OR organization_id = (SELECT current_organization()));
--> statement-breakpoint
ALTER TABLE told_clusters ENABLE ROW LEVEL SECURITY;
--> statement-breakpoint
ALTER TABLE told_clusters FORCE ROW LEVEL SECURITY;
--> statement-breakpoint
CREATE POLICY worker_sees_all ON told_clusters TO fleetbook_worker USING (true) WITH CHECK (true);
--> statement-breakpoint
-- feed_organizations() runs as the owner, whom FORCE would otherwise keep out.
CREATE POLICY owner_looks_up_organizations ON feed_changes FOR SELECT TO CURRENT_USER USING (true);
--> statement-breakpoint
-- Whose clusters have changed between two positions of the feed: a reader asks on behalf of those whom it serves alone.
CREATE FUNCTION feed_organizations(since bigint, until bigint) RETURNS SETOF integer
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public
  BEGIN ATOMIC
    SELECT DISTINCT organization_id FROM feed_changes
    WHERE last > since AND last <= until AND organization_id IS NOT NULL;
  END;
--> statement-breakpoint
REVOKE ALL ON FUNCTION feed_organizations(bigint, bigint) FROM PUBLIC;
--> statement-breakpoint
GRANT EXECUTE ON FUNCTION feed_organizations(bigint, bigint) TO fleetbook_reader, fleetbook_worker;
--> statement-breakpoint
GRANT SELECT, INSERT ON cluster_slugs TO fleetbook_worker;
--> statement-breakpoint
ALTER TABLE cluster_slugs ENABLE ROW LEVEL SECURITY;
--> statement-breakpoint
ALTER TABLE cluster_slugs FORCE ROW LEVEL SECURITY;
--> statement-breakpoint
CREATE POLICY worker_sees_all ON cluster_slugs TO fleetbook_worker USING (true) WITH CHECK (true);
--> statement-breakpoint
CREATE POLICY owner_notes_slugs ON cluster_slugs TO CURRENT_USER USING (true) WITH CHECK (true);
--> statement-breakpoint
-- Once a statement, in the order of the key: two that add the same slugs wait for each other and never for ever.
CREATE FUNCTION note_cluster_slugs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO cluster_slugs (organization_id, slug)
  SELECT DISTINCT w.organization_id, w.slug FROM written w
  WHERE NOT EXISTS (SELECT FROM cluster_slugs s WHERE s.organization_id = w.organization_id AND s.slug = w.slug)
  ORDER BY w.organization_id, w.slug
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER inserted_clusters_have_slugs AFTER INSERT ON clusters REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION note_cluster_slugs();
--> statement-breakpoint
CREATE TRIGGER updated_clusters_have_slugs AFTER UPDATE ON clusters REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION note_cluster_slugs();
--> statement-breakpoint
INSERT INTO cluster_slugs (organization_id, slug) SELECT DISTINCT organization_id, slug FROM clusters;
