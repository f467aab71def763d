ALTER TABLE "regions" ADD COLUMN "country" text;
