CREATE INDEX "audit_log_by_person" ON "audit_log" USING btree ("by","id");--> statement-breakpoint
CREATE INDEX "audit_log_by_action" ON "audit_log" USING btree ("action","id");