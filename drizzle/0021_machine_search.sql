CREATE TABLE "machine_names" (
	"provider_id" integer NOT NULL,
	"name" text NOT NULL,
	CONSTRAINT "machine_names_provider_id_name_pk" PRIMARY KEY("provider_id","name")
);
--> statement-breakpoint
DROP INDEX "machines_by_shape";--> statement-breakpoint
ALTER TABLE "machine_names" ADD CONSTRAINT "machine_names_provider_id_providers_id_fk" FOREIGN KEY ("provider_id") REFERENCES "public"."providers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "excluded_machines_by_shape" ON "machines" USING btree ("cpu","ram_unit","ram","price","id","region_id","name") WHERE "machines"."retired_at" is null and "machines"."excluded_reason" is not null;--> statement-breakpoint
CREATE INDEX "machines_by_shape" ON "machines" USING btree ("cpu","ram_unit","ram","price","id","region_id","name") WHERE "machines"."retired_at" is null and "machines"."excluded_reason" is null;