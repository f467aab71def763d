/** Plans of managed databases in the head of a region's columns. A region without plans has no bytes of them. */
import type { PublishedPlan } from '../../domain/database-plan.ts';

/** A plan as a list: a region may have hundreds. */
type PlanTuple = readonly [
  id: number,
  engine: string,
  name: string,
  nodes: PublishedPlan['nodes'],
  cpu: PublishedPlan['cpu'],
  ram: PublishedPlan['ram'],
  ramUnit: PublishedPlan['ramUnit'],
  storage: PublishedPlan['storage'],
  price: string,
];
const FIELDS = 9;

/** The part of the head. */
export interface DatabasesPart {
  readonly databases?: readonly PlanTuple[];
}

/** @param plans null: none */
export function databasesPart(plans: readonly PublishedPlan[] | null | undefined): DatabasesPart {
  if (!plans?.length) return {};
  const databases = plans.map(({ id, engine, name, nodes, cpu, ram, ramUnit, storage, price }): PlanTuple => {
    return [id, engine, name, nodes, cpu, ram, ramUnit, storage, price];
  });
  return { databases };
}

export function readDatabases({ databases }: DatabasesPart): readonly PublishedPlan[] | undefined {
  return databases?.map(([id, engine, name, nodes, cpu, ram, ramUnit, storage, price]) => {
    return { id, engine, name, nodes, cpu, ram, ramUnit, storage, price };
  });
}

/** Returns true if the part can be read. A later release may add fields at the end of a plan. */
export function isDatabasesPart({ databases }: DatabasesPart): boolean {
  return databases === undefined || (Array.isArray(databases) && databases.every(isPlan));
}

const isPlan = (tuple: unknown): boolean => {
  if (!Array.isArray(tuple) || tuple.length < FIELDS) return false;
  const [id, engine, name, nodes, cpu, ram, , storage, price] = tuple;
  const texts = [engine, name, price].every((value) => typeof value === 'string');
  return texts && Number.isInteger(id) && [nodes, cpu, ram, storage].every(isNumberOrNull);
};

const isNumberOrNull = (value: unknown) => value === null || Number.isFinite(value);
