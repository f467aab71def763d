DROP INDEX "schedule_slots_not_enqueued";--> statement-breakpoint
ALTER TABLE "lineage" ADD COLUMN "deployment" uuid DEFAULT gen_random_uuid() NOT NULL;--> statement-breakpoint
ALTER TABLE "schedule_slots" ADD COLUMN "attempt" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "schedule_slots" ADD COLUMN "begun_at" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "schedule_slots" ADD COLUMN "failures" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "schedule_slots" ADD COLUMN "cause" text;--> statement-breakpoint
ALTER TABLE "schedule_slots" ADD COLUMN "asked_by" text;