/** Entries as people write and see them: in files, commands and routes. The console in the browser shares these types. */

/** An entry to add. All fields are optional but one of `discount` and `price`. */
export interface GivenEntry {
  /** Name or id. */
  readonly provider?: string;
  /** The code, e.g. `eu-west-1`. */
  readonly region?: string;
  /** The beginning of names, e.g. `m5.`. */
  readonly family?: string;
  /** `name@region`, e.g. `cx22@fsn1`, or an id. */
  readonly machine?: string;
  /** `on_demand`, `spot`, …; every term unless given. */
  readonly term?: string;
  /** Percent off the list price. */
  readonly discount?: string;
  /** Per minute, in the published currency. */
  readonly price?: string;
  /** A date or RFC 3339; now unless given. */
  readonly from?: string;
  readonly to?: string;
}

export type EntryState = 'applies' | 'begins later' | 'ended';

export interface ShownEntry extends GivenEntry {
  readonly id: number;
  readonly from: string;
  readonly state: EntryState;
}

/** `GET /api/organizations/:slug/price-book`. */
export interface PriceBookAnswer {
  readonly organization: string;
  readonly currency: string | null;
  /** Ended ones only if the request asks for them. */
  readonly entries: readonly ShownEntry[];
}

/** What clusters cost on demand in a month of 730 hours. */
export interface MonthCost {
  /** Null if a price is unknown. */
  readonly perMonth: number | null;
  readonly knownPerMonth: number;
}

/** `GET /api/organizations/:slug/price-book/preview` with the fields of `GivenEntry`. Nothing is stored. */
export interface EntryPreview {
  readonly currency: string | null;
  /** When the costs apply: now, or when an entry of the future begins. */
  readonly at: string;
  readonly isLater: boolean;
  /** Published machines that the entry selects. A more specific entry may still give their price. */
  readonly machines: number;
  readonly clusters: number;
  /** Clusters whose cost the entry changes. */
  readonly affected: number;
  readonly before: MonthCost;
  readonly after: MonthCost;
}

/** `POST /api/organizations/:slug/price-book` with `GivenEntry` and `reason`. */
export interface AddedEntry {
  readonly entry: ShownEntry;
  /** False if the cache is down: readers get the change later. */
  readonly published: boolean;
}

/** `POST /api/organizations/:slug/price-book/:entry/end` with `at` and `reason`, both optional. */
export interface EndedEntry {
  readonly id: number;
  /** Null if the entry had not begun and was removed. */
  readonly to: string | null;
  readonly published: boolean;
}

/** The file of `fleetbook price export` and `import`. */
export interface PriceBookFile {
  readonly organization?: string;
  /** The currency of fixed prices. An import with another one is refused. */
  readonly currency?: string;
  readonly entries: readonly GivenEntry[];
}
