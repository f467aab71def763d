import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { nothingListed } from '../http/listing.ts';
import { currencyCode, label } from '../schema/fields.ts';
import { offerItem } from '../schema/offers.ts';
import { labelIn, type Row, readRow, rejectedRow } from '../schema/rows.ts';
import {
  type CatalogueAdapter,
  type CatalogueItem,
  type RejectedRow,
  SourceError,
  type SourceHttp,
} from '../source.ts';
import { exclusion, hourlyPrice, isPaidByHour, localDisk, Machine } from './ovh/machine.ts';

const CATALOG = '/v1/order/catalog/public/cloud';
const AVAILABILITY = '/v1/cloud/order/rule/availability';

/** Whose prices are read (Ireland's, in EUR), unless the source's URL names another: `?ovhSubsidiary=US`. */
const SUBSIDIARY = 'IE';

/** Most plans that one reason names. */
const MOST_NAMED = 20;

/**
 * `b3-8.consumption`, `b2-7.monthly.postpaid`, `b3-8.consumption.3AZ`, `b3-8.consumption.LZ.EUROZONE`: the type, how it
 * is paid and the kind of place. Types of the third generation have no plan by the month.
 */
const PLAN_CODE = /^(?<type>.+?)\.(?<paid>consumption|monthly\.postpaid|monthly)(?<place>\..+)?$/;

/** The payload has 8 MB, most of it addons of other products. */
const Catalog = z.object({
  locale: z.object({ currencyCode }),
  addons: z.array(z.unknown()),
});

const Addon = z.object({ planCode: label, product: label });

/**
 * `cloud.order.rule.Availability` of the API's own schema, https://eu.api.ovh.com/v1/cloud.json. Its `products` are of
 * no use here: they do not tell one type from another.
 */
const Rules = z.object({ plans: z.array(z.unknown()) });
const Rule = z.object({ code: label, regions: z.array(label) });

/** Many addons that are paid by the hour name no region; the monthly addon of the same machine may. */
const Configured = z.object({
  configurations: z.array(z.object({ name: z.string(), values: z.array(label).nullish() })).nullable(),
});

/** One type in one kind of place (ordinary regions, those of three zones, local zones): a price for all of them. */
interface Plan {
  readonly type: string;
  /** Where its addons say that it is sold. */
  readonly configured: Set<string>;
  /** Its addons that are paid by the hour. The sync rejects a machine that is listed twice. */
  readonly machines: { readonly planCode: string; readonly row: Row<Machine> }[];
}

interface Catalogue {
  readonly plans: Map<string, Plan>;
  /** Codes of hourly plans that are kept for existing customers and have no description. */
  readonly undescribed: string[];
}

/** Where plans are sold, by their code; or why OVH does not tell. */
type Availability =
  | { readonly regions: ReadonlyMap<string, readonly string[]>; readonly closed?: never }
  | { readonly regions?: never; readonly closed: string };

/**
 * Source: https://eu.api.ovh.com/console/?section=%2Forder&branch=v1#get-/order/catalog/public/cloud and
 * https://eu.api.ovh.com/console/?section=%2Fcloud&branch=v1#get-/cloud/order/rule/availability; of the token,
 * https://docs.ovhcloud.com/en/guides/manage-and-operate/api/manage-service-account.
 */
export const adapter: CatalogueAdapter = {
  id: 'ovh',
  provider: { id: 4, name: 'OVH' },
  baseUrl: 'https://eu.api.ovh.com',
  endpoints: [CATALOG, AVAILABILITY],
  credentials: 'optional-bearer',
  memoryUnit: 'GB',
  currency: 'EUR',
  facts: ['localDisk', 'network'],
  schedule: '42 */6 * * *',
  notes:
    'The catalogue is public, and names the regions of older types alone; where the others are sold, the rules of ' +
    'availability say. Where OVH tells those only to customers, the token is an OAuth 2.0 access token of a service ' +
    'account that may `GET /cloud/order/rule/availability`; it lives for an hour. Without it such plans wait in ' +
    'quarantine, the others are read all the same.',

  async *catalogue({ http }) {
    const query = http.base.searchParams.has('ovhSubsidiary') ? {} : { ovhSubsidiary: SUBSIDIARY };
    const { addons, locale } = (await http.json(CATALOG, Catalog, { query })).data;
    const read: Catalogue = { plans: new Map(), undescribed: [] };
    for (const [index, row] of addons.entries()) yield* readAddon(row, `addon ${index + 1}`, read);
    const plans = [...read.plans.values()];
    if (plans.every((plan) => plan.machines.length === 0)) throw nothingListed(CATALOG);
    const availability = yield* readAvailability(http, query);

    const sold = plans.flatMap((plan) =>
      plan.machines.map(({ planCode, row }) => {
        const regions = availability.regions?.get(planCode) ?? [...plan.configured];
        return { name: plan.type, planCode, row, regions: new Set(regions) };
      }),
    );
    for (const code of new Set(sold.flatMap(({ regions }) => [...regions]))) {
      yield { kind: 'region', code, name: code };
    }
    const located = new Set(sold.flatMap(({ name, regions }) => (regions.size > 0 ? [name] : [])));
    for (const plan of sold) {
      if (plan.regions.size > 0) yield* offers(plan, locale.currencyCode);
      else yield nowhere(plan, availability, located);
    }
    if (read.undescribed.length > 0) yield undescribed(read.undescribed);
  },
};

/** Adds an addon to its plan, where it is a machine or says where one is sold. */
function* readAddon(
  row: unknown,
  unnamed: string,
  { plans, undescribed: unknown }: Catalogue,
): Generator<CatalogueItem> {
  const code = labelIn(row, 'planCode');
  const { type, paid, place = '' } = PLAN_CODE.exec(code ?? '')?.groups ?? {};
  const { value: addon, reason } = readRow(Addon, row);
  if (addon === undefined) {
    yield rejectedRow(code ?? unnamed, reason, { name: type });
    return;
  }
  const { planCode } = addon;
  // Storage, networks and the like are no machines.
  if (addon.product !== 'publiccloud-instance') return;
  if (type === undefined) {
    // Other ways to pay (savings plans) are not on demand.
    if (isPaidByHour(row))
      yield forItself(planCode, 'planCode must be that of a type, such as b3-8.consumption');
    return;
  }
  const { value: configured, reason: unusable } = readRow(Configured, row);
  if (configured === undefined) {
    yield rejectedRow(planCode, unusable, { name: type });
    return;
  }
  const key = JSON.stringify([type, place]);
  const plan = plans.get(key) ?? { type, configured: new Set(), machines: [] };
  plans.set(key, plan);
  for (const { name, values } of configured.configurations ?? []) {
    if (name === 'region') for (const region of values ?? []) plan.configured.add(region);
  }
  if (paid !== 'consumption') return;
  if (z.object({ blobs: z.null() }).safeParse(row).success) unknown.push(planCode);
  else plan.machines.push({ planCode, row: readRow(Machine, row) });
}

/**
 * Reads which regions sell a plan. OVH may tell it only to holders of a token: without one the answer is `closed`. A token
 * that is refused ends the run, as does any other failure.
 */
async function* readAvailability(
  http: SourceHttp,
  query: Readonly<Record<string, string>>,
): AsyncGenerator<RejectedRow, Availability> {
  const answer = await http.json(AVAILABILITY, Rules, { query }).catch((error: unknown) => {
    if (error instanceof SourceError && error.kind === 'misconfigured' && !http.hasCredentials) return error;
    throw error;
  });
  if (answer instanceof SourceError) return { closed: answer.message };
  const { plans } = answer.data;
  if (plans.length === 0) throw nothingListed(AVAILABILITY);
  const regions = new Map<string, readonly string[]>();
  for (const [index, row] of plans.entries()) {
    const { value: rule, reason } = readRow(Rule, row, ['plans', index]);
    const code = labelIn(row, 'code');
    if (rule !== undefined) regions.set(rule.code, rule.regions);
    // It may be a rule of storage or the like: then its name is no machine's.
    else
      yield rejectedRow(`rule ${code === undefined ? index + 1 : `of ${code}`}`, reason, {
        name: code?.replace(PLAN_CODE, '$<type>'),
      });
  }
  return { regions };
}

interface SoldPlan {
  readonly name: string;
  readonly planCode: string;
  readonly row: Row<Machine>;
  readonly regions: ReadonlySet<string>;
}

function* offers({ name, planCode, row, regions }: SoldPlan, currency: string): Generator<CatalogueItem> {
  const { value: machine, reason } = row;
  const { price, reason: unpriced } = machine === undefined ? { reason } : hourlyPrice(machine, currency);
  if (machine === undefined || price === undefined) {
    yield rejectedRow(planCode, reason ?? unpriced ?? '', { name });
    return;
  }
  const { technical } = machine.blobs;
  const { ram, unit: ramUnit } = memory(technical.memory.size, adapter.memoryUnit);
  const { cores: cpu } = technical.cpu;
  const excluded = exclusion(name, machine);
  const facts = { localDisk: localDisk(technical), network: technical.bandwidth?.level };
  for (const regionCode of regions)
    yield offerItem({ regionCode, name, cpu, ram, ramUnit, price, facts }, excluded);
}

/**
 * A plan without a region. Where the rules were read, it is sold nowhere, and its stored machines count as missing. Where
 * the rules are closed, it may be sold as before: the stored machines of its type are kept, unless another plan of the
 * type has regions, to which they belong then.
 */
function nowhere(
  { name, planCode }: SoldPlan,
  { closed }: Availability,
  located: ReadonlySet<string>,
): RejectedRow {
  const reason =
    closed === undefined
      ? `is sold in no region: no configuration names one, and ${AVAILABILITY} lists it for none`
      : `no configuration says in which regions it is sold, and ${closed}`;
  const row = forItself(planCode, reason);
  return { ...row, waits: true, ...(closed === undefined || located.has(name) ? {} : { name }) };
}

/** One row for all of them: they are many, and have the same reason. */
function undescribed(codes: readonly string[]): RejectedRow {
  const named = codes.toSorted().slice(0, MOST_NAMED).join(', ');
  const more = codes.length > MOST_NAMED ? ` and ${codes.length - MOST_NAMED} more` : '';
  const reason = `blobs is null in ${codes.length} addons that are paid by the hour: ${named}${more}`;
  return { ...forItself('addons without a description', reason), waits: true };
}

/** A row that stands for no stored machine: no machine has its name, so it keeps none from counting as missing. */
function forItself(key: string, reason: string): RejectedRow {
  return rejectedRow(key, reason, { name: key });
}
