/** The own prices of an organization. */
import type { Term } from './term.ts';

/** One entry of a price book. It selects machines, and has either a percentage or a fixed price. */
export interface PriceBookEntry {
  readonly id: number;
  /** Undefined: every provider. */
  readonly providerId: number | undefined;
  readonly regionId: number | undefined;
  /** Machines whose name starts with this text, e.g. `m5.`. */
  readonly family: string | undefined;
  readonly machineId: number | undefined;
  /** Undefined: every term, `on_demand` included. */
  readonly term: Term | 'on_demand' | undefined;
  /** Percent off the list price, a plain decimal above 0 and at most 100. */
  readonly discount: string | undefined;
  /** Per minute in the published currency, a plain decimal. Only with `machineId`. */
  readonly price: string | undefined;
  /** RFC 3339, UTC. The entry applies from `from` to before `to`; undefined: without end. */
  readonly from: string;
  readonly to: string | undefined;
}
