ALTER TABLE "machines" ADD COLUMN "architecture" text;--> statement-breakpoint
ALTER TABLE "machines" ADD COLUMN "generation" text;--> statement-breakpoint
ALTER TABLE "machines" ADD COLUMN "cpu_kind" text;--> statement-breakpoint
ALTER TABLE "machines" ADD COLUMN "local_disk" numeric;--> statement-breakpoint
ALTER TABLE "machines" ADD COLUMN "network" integer;--> statement-breakpoint
ALTER TABLE "machine_changes" ADD COLUMN "old_facts" jsonb;--> statement-breakpoint
ALTER TABLE "machine_changes" ADD COLUMN "facts" jsonb;