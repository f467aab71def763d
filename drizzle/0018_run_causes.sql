ALTER TABLE "sync_runs" ADD COLUMN "cause" text;--> statement-breakpoint
ALTER TABLE "sync_runs" ADD COLUMN "asked_by" text;