CREATE TABLE "operator_sessions" (
	"digest" "bytea" PRIMARY KEY NOT NULL,
	"operator_id" integer,
	"epoch" text NOT NULL,
	"began_at" timestamp(6) with time zone NOT NULL,
	"seen_at" timestamp(6) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "operators" ADD COLUMN "verified_address" text;--> statement-breakpoint
ALTER TABLE "operator_sessions" ADD CONSTRAINT "operator_sessions_operator_id_operators_id_fk" FOREIGN KEY ("operator_id") REFERENCES "public"."operators"("id") ON DELETE no action ON UPDATE no action;