-- Readers and the previous release use the old index until the new one is there.
CREATE INDEX "machines_of_source" ON "machines" USING btree ("source_id","added_by","retired_at","excluded_reason");--> statement-breakpoint
DROP INDEX "machines_by_source";
