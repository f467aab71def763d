CREATE TABLE "alert_deliveries" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "alert_deliveries_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"webhook" text NOT NULL,
	"message_id" text NOT NULL,
	"body" jsonb NOT NULL,
	"created_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"next_attempt_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"delivered_at" timestamp(6) with time zone,
	"gave_up_at" timestamp(6) with time zone,
	"last_error" text
);
--> statement-breakpoint
CREATE TABLE "alerts" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "alerts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"key" text NOT NULL,
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"summary" text NOT NULL,
	"details" jsonb NOT NULL,
	"opened_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"told_at" timestamp(6) with time zone,
	"resolved_at" timestamp(6) with time zone,
	"resolution" text
);
--> statement-breakpoint
CREATE INDEX "alert_deliveries_to_send" ON "alert_deliveries" USING btree ("webhook","id") WHERE delivered_at is null and gave_up_at is null;--> statement-breakpoint
CREATE UNIQUE INDEX "one_open_alert_per_key" ON "alerts" USING btree ("key") WHERE resolved_at is null;--> statement-breakpoint
CREATE INDEX "alerts_by_key" ON "alerts" USING btree ("key");--> statement-breakpoint
CREATE INDEX "alerts_by_time" ON "alerts" USING btree ("opened_at");--> statement-breakpoint
CREATE INDEX "machine_prices_by_time" ON "machine_prices" USING brin ("valid_from");
--> statement-breakpoint
GRANT SELECT, INSERT, UPDATE, DELETE ON alerts, alert_deliveries TO fleetbook_worker;
