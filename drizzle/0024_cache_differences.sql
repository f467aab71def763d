CREATE TABLE "cache_differences" (
	"document" text PRIMARY KEY NOT NULL,
	"verdict" text NOT NULL,
	"version" bigint NOT NULL,
	"cached" bigint NOT NULL,
	"found_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"times" integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE INDEX "cache_differences_by_time" ON "cache_differences" USING btree ("found_at");--> statement-breakpoint
-- Comparers note what they find, and alerts tell of it. Readers see none of it.
GRANT SELECT, INSERT, UPDATE, DELETE ON cache_differences TO fleetbook_worker;
