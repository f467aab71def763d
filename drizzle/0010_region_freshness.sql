CREATE TABLE "region_freshness" (
	"source_id" text NOT NULL,
	"region_id" integer NOT NULL,
	"verified_at" timestamp(6) with time zone NOT NULL,
	CONSTRAINT "region_freshness_source_id_region_id_pk" PRIMARY KEY("source_id","region_id")
);
--> statement-breakpoint
ALTER TABLE "held_batches" ADD COLUMN "read_at" timestamp(6) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "sources" ADD COLUMN "registered_at" timestamp(6) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "sources" ADD COLUMN "retired_at" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "region_freshness" ADD CONSTRAINT "region_freshness_source_id_sources_id_fk" FOREIGN KEY ("source_id") REFERENCES "public"."sources"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "region_freshness" ADD CONSTRAINT "region_freshness_region_id_regions_id_fk" FOREIGN KEY ("region_id") REFERENCES "public"."regions"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "region_freshness_by_region" ON "region_freshness" USING btree ("region_id");
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE, DELETE ON region_freshness TO fleetbook_worker;
--> statement-breakpoint
GRANT SELECT ON region_freshness TO fleetbook_reader;
--> statement-breakpoint
GRANT SELECT (retired_at) ON sources TO fleetbook_reader;
--> statement-breakpoint
-- Row security is forced: the owner of the tables does not see their rows, the worker does.
SET LOCAL ROLE fleetbook_worker;
--> statement-breakpoint
UPDATE sources s SET registered_at = least(
  s.verified_at, (SELECT min(n.started_at) FROM sync_runs n WHERE n.source_id = s.id), s.registered_at);
--> statement-breakpoint
UPDATE held_batches b SET read_at = n.started_at FROM sync_runs n WHERE n.id = b.run_id;
--> statement-breakpoint
-- Until now a region was as old as its whole source. One that is in quarantine by its code was not read since: its last
-- good run is the last one that had ended before. One without such a run, and one without a machine, has to be read first.
INSERT INTO region_freshness (source_id, region_id, verified_at)
SELECT known.source_id, known.region_id, fresh.verified_at
FROM (SELECT DISTINCT source_id, region_id FROM machines WHERE source_id IS NOT NULL) known
JOIN sources s ON s.id = known.source_id
JOIN regions r ON r.id = known.region_id AND r.organization_id IS NULL
LEFT JOIN quarantined_rows q ON q.source_id = s.id AND q.row_key = r.code
CROSS JOIN LATERAL (
  SELECT CASE WHEN q.row_key IS NULL THEN s.verified_at ELSE (
    SELECT max(n.started_at) FROM sync_runs n
    WHERE n.source_id = s.id AND n.outcome IN ('changed', 'unchanged') AND n.finished_at < q.first_seen_at
  ) END AS verified_at
) fresh
WHERE fresh.verified_at IS NOT NULL;
--> statement-breakpoint
-- Published documents name the freshness that they hang on: all of them are published again.
UPDATE regions SET version = version + 1 WHERE organization_id IS NULL;
--> statement-breakpoint
UPDATE lineage SET providers_version = providers_version + 1;
--> statement-breakpoint
SET LOCAL ROLE NONE;
