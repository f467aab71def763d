/** Pieces of work that show in a trace, where tracing is on (app/tracing). Where it is off they cost one comparison. */

export type TraceAttributes = Readonly<Record<string, string | number | boolean>>;

/** Says more of the piece of work under way. */
export type Note = (attributes: TraceAttributes) => void;

/** Does a piece of work, and records when it began and ended, and whether it failed. */
export type Tracer = <T>(name: string, attributes: TraceAttributes, work: (note: Note) => T) => T;

let tracer: Tracer | undefined;
const nobodyHears: Note = () => {};

/** @param next undefined switches tracing off again */
export function setTracer(next: Tracer | undefined): void {
  tracer = next;
}

/** @param name a few words that are the same each time, e.g. `sync compare` */
export function traced<T>(name: string, attributes: TraceAttributes, work: (note: Note) => T): T {
  return tracer === undefined ? work(nobodyHears) : tracer(name, attributes, work);
}
