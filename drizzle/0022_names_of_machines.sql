-- Once a statement, in the order of the key, so that two which add the same names wait for each other and never for ever.
CREATE FUNCTION note_machine_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO machine_names (provider_id, name)
  SELECT DISTINCT r.provider_id, w.name FROM written w JOIN regions r ON r.id = w.region_id
  ORDER BY r.provider_id, w.name
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER inserted_machines_have_names AFTER INSERT ON machines REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION note_machine_names();
--> statement-breakpoint
GRANT SELECT, INSERT ON machine_names TO fleetbook_worker;
--> statement-breakpoint
INSERT INTO machine_names (provider_id, name)
SELECT DISTINCT r.provider_id, m.name FROM machines m JOIN regions r ON r.id = m.region_id;
