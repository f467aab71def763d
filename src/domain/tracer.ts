/** Spans. Without tracing each costs one comparison; src/features/tracing records them. */

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** Adds attributes to the current span. */
export type Note = (attributes: SpanAttributes) => void;

export type Tracer = <T>(name: string, attributes: SpanAttributes, work: (note: Note) => T) => T;

let tracer: Tracer | undefined;
const ignore: Note = () => {};

/** @param next undefined switches tracing off */
export function setTracer(next: Tracer | undefined): void {
  tracer = next;
}

/** False while `traced` only runs its work. */
export const isTracing = (): boolean => tracer !== undefined;

/**
 * Runs the work as a span of the current trace and returns its result.
 * @param name a few constant words, e.g. `sync compare`
 * @param attributes no keys, parameters, paths or tokens, because a collector stores them
 */
export function traced<T>(name: string, attributes: SpanAttributes, work: (note: Note) => T): T {
  return tracer === undefined ? work(ignore) : tracer(name, attributes, work);
}
