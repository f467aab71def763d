ALTER TABLE "sources" ADD COLUMN "disabled_at" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "sources" ADD COLUMN "disabled_by" text;--> statement-breakpoint
ALTER TABLE "sources" ADD COLUMN "disabled_reason" text;