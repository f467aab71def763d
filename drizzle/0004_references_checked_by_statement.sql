ALTER TABLE "machine_prices" DROP CONSTRAINT "machine_prices_machine_id_machines_id_fk";
--> statement-breakpoint
ALTER TABLE "machines" DROP CONSTRAINT "machines_region_id_regions_id_fk";
--> statement-breakpoint
ALTER TABLE "machines" DROP CONSTRAINT "machines_source_id_sources_id_fk";

--> statement-breakpoint
-- What a foreign key does, with one look-up a statement instead of one a row. The locks keep what is referred to from
-- being deleted meanwhile.
CREATE FUNCTION check_machines_references() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  region_ids integer[];
  source_ids text[];
  astray text;
BEGIN
  SELECT array_agg(DISTINCT region_id), array_agg(DISTINCT source_id) FILTER (WHERE source_id IS NOT NULL)
  INTO region_ids, source_ids
  FROM (SELECT DISTINCT region_id, source_id FROM written) w;
  PERFORM FROM regions WHERE id = ANY (region_ids) FOR KEY SHARE;
  PERFORM FROM sources WHERE id = ANY (source_ids) FOR KEY SHARE;
  SELECT min(id)::text INTO astray FROM unnest(region_ids) named (id)
  WHERE NOT EXISTS (SELECT FROM regions r WHERE r.id = named.id);
  IF astray IS NOT NULL THEN
    RAISE foreign_key_violation USING MESSAGE = format('machines.region_id: there is no region %s', astray),
      TABLE = 'machines', COLUMN = 'region_id';
  END IF;
  SELECT min(id) INTO astray FROM unnest(source_ids) named (id)
  WHERE NOT EXISTS (SELECT FROM sources s WHERE s.id = named.id);
  IF astray IS NOT NULL THEN
    RAISE foreign_key_violation USING MESSAGE = format('machines.source_id: there is no source "%s"', astray),
      TABLE = 'machines', COLUMN = 'source_id';
  END IF;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER inserted_machines_refer AFTER INSERT ON machines REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION check_machines_references();
--> statement-breakpoint
CREATE TRIGGER updated_machines_refer AFTER UPDATE ON machines REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION check_machines_references();
--> statement-breakpoint
CREATE FUNCTION check_machine_prices_references() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  astray integer;
BEGIN
  SELECT min(machine_id) INTO astray FROM written w
  WHERE NOT EXISTS (SELECT FROM machines m WHERE m.id = w.machine_id);
  IF astray IS NOT NULL THEN
    RAISE foreign_key_violation USING MESSAGE = format('machine_prices.machine_id: there is no machine %s', astray),
      TABLE = 'machine_prices', COLUMN = 'machine_id';
  END IF;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER inserted_prices_refer AFTER INSERT ON machine_prices REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION check_machine_prices_references();
--> statement-breakpoint
CREATE TRIGGER updated_prices_refer AFTER UPDATE ON machine_prices REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION check_machine_prices_references();
--> statement-breakpoint
CREATE FUNCTION keep_what_machines_name() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  named text;
BEGIN
  IF TG_TABLE_NAME = 'regions' THEN
    SELECT min(m.region_id)::text INTO named FROM machines m JOIN gone ON gone.id = m.region_id;
  ELSE
    SELECT min(m.source_id) INTO named FROM machines m JOIN gone ON gone.id = m.source_id;
  END IF;
  IF named IS NOT NULL THEN
    RAISE foreign_key_violation USING MESSAGE = format('%s: machines refer to "%s"', TG_TABLE_NAME, named),
      TABLE = TG_TABLE_NAME;
  END IF;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER machines_keep_regions AFTER DELETE ON regions REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION keep_what_machines_name();
--> statement-breakpoint
CREATE TRIGGER machines_keep_sources AFTER DELETE ON sources REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION keep_what_machines_name();
--> statement-breakpoint
-- Clusters, price histories and callers hold on to a machine's id for ever.
CREATE FUNCTION refuse_for_ever() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE foreign_key_violation USING
    MESSAGE = format('%s of %s is refused: an id stands for ever', lower(TG_OP), TG_TABLE_NAME),
    HINT = TG_ARGV[0], TABLE = TG_TABLE_NAME;
END
$$;
--> statement-breakpoint
CREATE TRIGGER machines_are_not_deleted BEFORE DELETE ON machines
  FOR EACH ROW EXECUTE FUNCTION refuse_for_ever('Set retired_at instead.');
--> statement-breakpoint
CREATE TRIGGER machines_keep_their_id BEFORE UPDATE OF id ON machines
  FOR EACH ROW WHEN (old.id <> new.id) EXECUTE FUNCTION refuse_for_ever('Add another machine.');
--> statement-breakpoint
CREATE TRIGGER regions_keep_their_id BEFORE UPDATE OF id ON regions
  FOR EACH ROW WHEN (old.id <> new.id) EXECUTE FUNCTION refuse_for_ever('Add another region.');
--> statement-breakpoint
CREATE TRIGGER sources_keep_their_id BEFORE UPDATE OF id ON sources
  FOR EACH ROW WHEN (old.id <> new.id) EXECUTE FUNCTION refuse_for_ever('Add another source.');
