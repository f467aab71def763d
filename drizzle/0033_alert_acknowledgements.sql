ALTER TABLE "alerts" ADD COLUMN "acknowledged_at" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "alerts" ADD COLUMN "acknowledged_by" text;--> statement-breakpoint
ALTER TABLE "alerts" ADD COLUMN "acknowledged_reason" text;--> statement-breakpoint
ALTER TABLE "alerts" ADD COLUMN "snoozed_until" timestamp(6) with time zone;