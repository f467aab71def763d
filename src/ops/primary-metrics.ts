import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';

export interface PrimaryMetrics {
  readonly registry: Registry;
  /** A process ended that had been ready, and another takes its place. */
  readonly replaced: () => void;
}

/** Of the process that starts others to serve. @param ready how many of them are */
export function primaryMetrics(wanted: number, ready: () => number): PrimaryMetrics {
  const registry = new Registry();
  registry.setDefaultLabels({ process: 'api-primary' });
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  new Gauge({
    name: 'fleetbook_serve_processes',
    help: 'Processes that are to serve the API',
    registers,
  }).set(wanted);
  new Gauge({
    name: 'fleetbook_serve_processes_ready',
    help: 'Processes that serve the API now',
    registers,
    collect() {
      this.set(ready());
    },
  });
  const replacements = new Counter({
    name: 'fleetbook_serve_processes_replaced_total',
    help: 'Processes that ended while they served, and were replaced',
    registers,
  });
  return { registry, replaced: () => replacements.inc() };
}
