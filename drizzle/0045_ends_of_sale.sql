ALTER TABLE "machines" ADD COLUMN "orderable_until" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "machines" ADD COLUMN "retires_at" timestamp(6) with time zone;--> statement-breakpoint
CREATE INDEX "machines_by_end" ON "machines" USING btree (least("orderable_until", "retires_at")) WHERE least("machines"."orderable_until", "machines"."retires_at") is not null;