CREATE TABLE "accepted_prices" (
	"source_id" text NOT NULL,
	"region_code" text NOT NULL,
	"name" text NOT NULL,
	"amount" numeric NOT NULL,
	"per" text NOT NULL,
	"currency" text NOT NULL,
	"accepted_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"accepted_by" text NOT NULL,
	"reason" text,
	CONSTRAINT "accepted_prices_pk" PRIMARY KEY("source_id","region_code","name","amount","per","currency")
);
--> statement-breakpoint
ALTER TABLE "held_batches" ADD COLUMN "held_since" timestamp(6) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "held_batches" ADD COLUMN "decided_by" text;--> statement-breakpoint
ALTER TABLE "held_batches" ADD COLUMN "reason" text;--> statement-breakpoint
ALTER TABLE "held_batches" ADD COLUMN "reversible" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "held_batches" ADD COLUMN "verified_before" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "held_batches" ADD COLUMN "undone_at" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "held_batches" ADD COLUMN "undone_by" text;--> statement-breakpoint
ALTER TABLE "held_batches" ADD COLUMN "undone_reason" text;--> statement-breakpoint
ALTER TABLE "quarantined_rows" ADD COLUMN "code" text DEFAULT 'invalid' NOT NULL;--> statement-breakpoint
ALTER TABLE "quarantined_rows" ADD COLUMN "region_code" text;--> statement-breakpoint
ALTER TABLE "quarantined_rows" ADD COLUMN "name" text;--> statement-breakpoint
ALTER TABLE "quarantined_rows" ADD COLUMN "organization" text;--> statement-breakpoint
ALTER TABLE "quarantined_rows" ADD COLUMN "price" jsonb;--> statement-breakpoint
ALTER TABLE "sync_runs" ADD COLUMN "withdrawn" integer;--> statement-breakpoint
ALTER TABLE "accepted_prices" ADD CONSTRAINT "accepted_prices_source_id_sources_id_fk" FOREIGN KEY ("source_id") REFERENCES "public"."sources"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
UPDATE "held_batches" SET "held_since" = "created_at";
