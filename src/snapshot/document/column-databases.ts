/** Plans of managed databases in the head of a region's columns. A region without plans has no bytes of them. */
import type { PublishedPlan } from '../../domain/database-plan.ts';

/** In the order of `FIELDS`. */
type PlanTuple = PublishedPlan[keyof PublishedPlan][];

/** The part of the head. */
export interface DatabasesPart {
  readonly databases?: readonly PlanTuple[];
}

const FIELDS = [
  'id',
  'engine',
  'name',
  'nodes',
  'cpu',
  'ram',
  'ramUnit',
  'storage',
  'price',
] as const satisfies readonly (keyof PublishedPlan)[];

/** @param plans null: none */
export function databasesPart(plans: readonly PublishedPlan[] | null | undefined): DatabasesPart {
  return plans?.length ? { databases: plans.map((plan) => FIELDS.map((field) => plan[field])) } : {};
}

export function readDatabases({ databases }: DatabasesPart): readonly PublishedPlan[] | undefined {
  return databases?.map(
    (tuple) =>
      Object.fromEntries(FIELDS.map((field, i) => [field, tuple[i] ?? null])) as unknown as PublishedPlan,
  );
}

/** Returns true if the part can be read. A later release may add fields at the end of a plan. */
export function isDatabasesPart({ databases }: DatabasesPart): boolean {
  return databases === undefined || (Array.isArray(databases) && databases.every(isPlan));
}

const isPlan = (tuple: unknown): boolean => {
  if (!Array.isArray(tuple) || tuple.length < FIELDS.length) return false;
  const [id, engine, name, nodes, cpu, ram, , storage, price] = tuple;
  const texts = [engine, name, price].every((value) => typeof value === 'string');
  return texts && Number.isInteger(id) && [nodes, cpu, ram, storage].every(isNumberOrNull);
};

const isNumberOrNull = (value: unknown) => value === null || Number.isFinite(value);
