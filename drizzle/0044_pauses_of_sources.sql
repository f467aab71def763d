ALTER TABLE "sources" ADD COLUMN "paused_until" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "sources" ADD COLUMN "paused_reason" text;