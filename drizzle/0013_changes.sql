CREATE TABLE "cluster_changes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "cluster_changes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"run_id" bigint,
	"source_id" text NOT NULL,
	"changed_at" timestamp(6) with time zone NOT NULL,
	"organization_id" integer NOT NULL,
	"cluster_id" integer NOT NULL,
	"change" text NOT NULL,
	"before" jsonb NOT NULL,
	"after" jsonb DEFAULT '{}' NOT NULL
);
--> statement-breakpoint
CREATE TABLE "machine_changes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "machine_changes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"run_id" bigint,
	"source_id" text NOT NULL,
	"changed_at" timestamp(6) with time zone NOT NULL,
	"machine_id" integer NOT NULL,
	"change" text NOT NULL,
	"old_cpu" integer NOT NULL,
	"old_ram" numeric NOT NULL,
	"old_ram_unit" text NOT NULL,
	"old_amount" numeric,
	"old_per" text,
	"old_currency" text,
	"old_excluded_reason" text,
	"cpu" integer,
	"ram" numeric,
	"ram_unit" text,
	"source_amount" numeric,
	"source_per" text,
	"source_currency" text,
	"excluded_reason" text
);
--> statement-breakpoint
DROP INDEX "machines_by_source";--> statement-breakpoint
ALTER TABLE "machines" ADD COLUMN "added_by" bigint;--> statement-breakpoint
ALTER TABLE "clusters" ADD COLUMN "added_by" bigint;--> statement-breakpoint
ALTER TABLE "lineage" ADD COLUMN "changes_since" timestamp(6) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "sync_runs" ADD COLUMN "changed_at" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "sync_runs" ADD COLUMN "namings" jsonb;--> statement-breakpoint
ALTER TABLE "sync_runs" ADD COLUMN "decided_batch" integer;--> statement-breakpoint
ALTER TABLE "sync_runs" ADD COLUMN "decision" text;--> statement-breakpoint
CREATE INDEX "cluster_changes_by_time" ON "cluster_changes" USING btree ("changed_at");--> statement-breakpoint
CREATE INDEX "cluster_changes_by_organization" ON "cluster_changes" USING btree ("organization_id","cluster_id","id");--> statement-breakpoint
CREATE INDEX "machine_changes_by_time" ON "machine_changes" USING btree ("changed_at");--> statement-breakpoint
CREATE INDEX "machine_changes_by_machine" ON "machine_changes" USING btree ("machine_id","id");--> statement-breakpoint
CREATE INDEX "clusters_by_run" ON "clusters" USING btree ("added_by");--> statement-breakpoint
CREATE INDEX "sync_runs_that_changed" ON "sync_runs" USING btree ("changed_at") WHERE changed_at is not null;--> statement-breakpoint
CREATE INDEX "machines_by_source" ON "machines" USING btree ("source_id","added_by");
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE, DELETE ON machine_changes, cluster_changes TO fleetbook_worker;
--> statement-breakpoint
GRANT USAGE, SELECT ON SEQUENCE machine_changes_id_seq, cluster_changes_id_seq TO fleetbook_worker;
--> statement-breakpoint
-- Readers serve no changes: what they are not granted they do not see.
ALTER TABLE cluster_changes ENABLE ROW LEVEL SECURITY;
--> statement-breakpoint
ALTER TABLE cluster_changes FORCE ROW LEVEL SECURITY;
--> statement-breakpoint
CREATE POLICY worker_sees_all ON cluster_changes TO fleetbook_worker USING (true) WITH CHECK (true);
