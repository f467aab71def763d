/** The spans of this program. They cost one comparison each while tracing is off; src/features/tracing records them. */

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** Adds attributes to the span under way. */
export type Note = (attributes: SpanAttributes) => void;

/** Does the work, and records its begin, its end and whether it failed. */
export type Tracer = <T>(name: string, attributes: SpanAttributes, work: (note: Note) => T) => T;

let tracer: Tracer | undefined;
const ignore: Note = () => {};

/** @param next undefined switches tracing off */
export function setTracer(next: Tracer | undefined): void {
  tracer = next;
}

/**
 * Returns the result of the work, which is a span of the trace under way.
 * @param name a few constant words, e.g. `sync compare`
 * @param attributes no keys, parameters, paths or tokens: a collector stores them
 */
export function traced<T>(name: string, attributes: SpanAttributes, work: (note: Note) => T): T {
  return tracer === undefined ? work(ignore) : tracer(name, attributes, work);
}
