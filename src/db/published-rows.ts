/** SQL for machines and clusters as readers see them. The feed compares hashes of it, and so finds every visible change. */
import { factPairs } from './machine-facts.ts';

/** A published machine `m` in the region `r` of the provider `p`, as JSON. */
export const MACHINE_JSON = `json_build_object(
  'id', m.id, 'name', m.name, 'ram', m.ram::integer, 'cpu', m.cpu, 'price', m.price, 'ram_unit', m.ram_unit,
  'provider', json_build_object('id', p.id, 'name', p.name),
  'region', json_build_object('id', r.id, 'name', r.name, 'code', r.code),
  ${factPairs('m', 'columns')})`;

export const IS_PUBLISHED = 'm.excluded_reason is null and m.retired_at is null';

/** Machines `m` of a catalogue; clusters alone name the others. */
export const IS_LISTED = `m.excluded_reason is distinct from 'unlisted'`;

/** Machines `m` that nothing but their stock excludes. */
export const HAS_NO_OTHER_REASON = `coalesce(m.excluded_reason, 'sold_out') = 'sold_out'`;

/** Machines `m` in the lists with `available=all`. */
export const IS_PUBLISHED_OR_SOLD_OUT = `${HAS_NO_OTHER_REASON} and m.price > 0 and m.retired_at is null`;

/** Disks `d` with their types `t`, as JSON. */
export const DISKS_AGGREGATE = `json_agg(json_build_object(
      'type', json_build_object('name', t.name, 'price', t.price, 'unit', t.unit),
      'size', d.size, 'unit', d.unit, 'autoscaling', d.autoscaling) order by d.position)`;

/** The disks of a cluster `c`, as JSON. */
const DISKS_JSON = `(
    select coalesce(${DISKS_AGGREGATE}, '[]')
    from disks d join disk_types t on t.organization_id = d.organization_id and t.id = d.disk_type_id
    where d.organization_id = c.organization_id and d.cluster_id = c.id)`;

/** A cluster `c` with `JOIN_OF_CLUSTER`, as JSON. */
export const CLUSTER_JSON = `json_build_object(
  'name', c.name, 'slug', c.slug,
  'region', json_build_object('name', r.name, 'code', r.code),
  'provider', json_build_object('id', p.id, 'name', p.name),
  'status', c.status, 'shards', c.shards, 'replicas', c.replicas,
  'user', json_build_object('first_name', u.first_name, 'last_name', u.last_name),
  'machine', json_build_object('ram', ceil(m.ram), 'cpu', m.cpu, 'id', m.id, 'ram_unit', m.ram_unit),
  'disks', ${DISKS_JSON},
  'created_at', to_char(c.created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US'))`;

export const JOIN_OF_CLUSTER = `join regions r on r.id = c.region_id join providers p on p.id = r.provider_id
  join users u on u.organization_id = c.organization_id and u.id = c.user_id
  join machines m on m.id = c.machine_id`;
