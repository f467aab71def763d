/** Which run, or which request, a line of the log is about: known to every line that is written meanwhile, by whomever. */
import { AsyncLocalStorage } from 'node:async_hooks';

type LogFields = Record<string, string | number | undefined>;

const storage = new AsyncLocalStorage<LogFields>();

/** Does a piece of work. Each line that is logged during it has the fields, and those that are added on the way. */
export function inLogContext<T>(fields: Readonly<LogFields>, work: () => T): T {
  return storage.run({ ...fields }, work);
}

/** Does it in the context that there is, or in a new one: what is added to that stays for who has begun it. */
export function inSomeLogContext<T>(work: () => T): T {
  return storage.getStore() === undefined ? storage.run({}, work) : work();
}

/** Adds fields to all further lines of the piece of work under way. Without one it does nothing. */
export function addLogFields(fields: Readonly<LogFields>): void {
  const current = storage.getStore();
  if (current) Object.assign(current, fields);
}

const sources = new Set<() => LogFields>();

/** Adds fields that somebody else knows of each line, e.g. the trace that it belongs to. @returns what takes them out again */
export function addLogSource(source: () => LogFields): () => void {
  sources.add(source);
  return () => void sources.delete(source);
}

/** The fields of the piece of work under way: pino's `mixin`. A line's own fields come before them. */
export function logFields(): LogFields {
  const fields = { ...storage.getStore() };
  for (const source of sources) Object.assign(fields, source());
  return fields;
}
