import { AsyncLocalStorage } from 'node:async_hooks';

type LogFields = Record<string, string | number | undefined>;

const storage = new AsyncLocalStorage<LogFields>();

/** Runs `work`. Each of its log lines has the fields, and those that `addLogFields` adds. */
export function inLogContext<T>(fields: Readonly<LogFields>, work: () => T): T {
  return storage.run({ ...fields }, work);
}

/** Runs `work` in the current context, or in a new one. */
export function inSomeLogContext<T>(work: () => T): T {
  return storage.getStore() === undefined ? storage.run({}, work) : work();
}

/** Adds fields to all further lines of the current context, if there is one. */
export function addLogFields(fields: Readonly<LogFields>): void {
  const current = storage.getStore();
  if (current) Object.assign(current, fields);
}

const sources = new Set<() => LogFields>();

/** Adds a function that returns further fields of each line, e.g. its trace. @returns a function that removes it */
export function addLogSource(source: () => LogFields): () => void {
  sources.add(source);
  return () => void sources.delete(source);
}

/** Returns the fields of the current context, for pino's `mixin`. A line's own fields override them. */
export function logFields(): LogFields {
  const fields = { ...storage.getStore() };
  for (const source of sources) Object.assign(fields, source());
  return fields;
}
