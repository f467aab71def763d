CREATE TABLE "export_chunks" (
	"export_id" bigint NOT NULL,
	"position" integer NOT NULL,
	"data" "bytea" NOT NULL,
	CONSTRAINT "export_chunks_export_id_position_pk" PRIMARY KEY("export_id","position")
);
--> statement-breakpoint
CREATE TABLE "exports" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "exports_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"version" text NOT NULL,
	"file" text NOT NULL,
	"coding" text NOT NULL,
	"bytes" bigint NOT NULL,
	"rows" bigint NOT NULL,
	"hash" text NOT NULL,
	"chunk_bytes" integer NOT NULL,
	"currency" text,
	"created_at" timestamp(6) with time zone NOT NULL,
	CONSTRAINT "exports_natural_key" UNIQUE("version","file","coding")
);
--> statement-breakpoint
ALTER TABLE "export_chunks" ADD CONSTRAINT "export_chunks_export_id_exports_id_fk" FOREIGN KEY ("export_id") REFERENCES "public"."exports"("id") ON DELETE cascade ON UPDATE no action;
--> statement-breakpoint
-- Workers make the files, readers give them away.
GRANT SELECT, INSERT, UPDATE, DELETE ON exports, export_chunks TO fleetbook_worker;
--> statement-breakpoint
GRANT USAGE, SELECT ON SEQUENCE exports_id_seq TO fleetbook_worker;
--> statement-breakpoint
GRANT SELECT ON exports, export_chunks TO fleetbook_reader;
