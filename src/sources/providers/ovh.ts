import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { nothingListed } from '../http/lists.ts';
import { currencyCode, label, someRows } from '../schema/fields.ts';
import { offerItem, orRejected, rejectedRow } from '../schema/items.ts';
import { RegionPrices } from '../schema/region-prices.ts';
import { labelIn, type Row, readRow, valueIn } from '../schema/rows.ts';
import {
  type CatalogueAdapter,
  type CatalogueItem,
  type RejectedRow,
  SourceError,
  type SourceHttp,
} from '../source.ts';
import { addPlan } from './ovh/database-plans.ts';
import { exclusion, hourlyAmount, isPaidByHour, localDisk, Machine } from './ovh/machine.ts';
import { addTraffic, addVolume } from './ovh/region-prices.ts';
import { type Addon, configuredRegions } from './ovh/selling-regions.ts';

const CATALOG = '/v1/order/catalog/public/cloud';
const AVAILABILITY = '/v1/cloud/order/rule/availability';

/** Ireland, in EUR. The URL may name another one: `?ovhSubsidiary=WE`. Only https://api.us.ovhcloud.com has that of the US. */
const SUBSIDIARY = 'IE';

const MOST_NAMED = 20;

/** `b3-8.consumption`, `b2-7.monthly.postpaid`, `b3-8.consumption.LZ.EUROZONE`: type, payment and kind of place. */
const PLAN_CODE = /^(?<type>.+?)\.(?<paid>consumption|monthly\.postpaid|monthly)(?<place>\..+)?$/;

const Catalog = z.object({
  locale: z.object({ currencyCode }),
  addons: z.array(z.unknown()),
});

const AddonKind = z.object({ planCode: label, product: label });

/** `cloud.order.rule.Availability` in the API's schema, https://eu.api.ovh.com/v1/cloud.json. */
const Rules = z.object({ plans: someRows });
const Rule = z.object({ code: label, regions: z.array(label) });

/** Many hourly addons name no region. The monthly addon of the same machine may name it. */
const Configured = z.object({
  configurations: z.array(z.object({ name: z.string(), values: z.array(label).nullish() })).nullable(),
});

/** One type in one kind of place (regions, regions with three zones, local zones), with one price for all of them. */
interface Plan {
  readonly type: string;
  readonly configured: Set<string>;
  /** Its hourly addons. The sync rejects a machine that is listed twice. */
  readonly machines: { readonly planCode: string; readonly row: Row<Machine> }[];
}

interface Catalogue {
  readonly plans: Map<string, Plan>;
  /** Addons that are no machines: volumes, traffic, databases and other products. */
  readonly others: Addon[];
  /** Codes of hourly plans without a description, which OVH keeps for existing customers. */
  readonly undescribed: string[];
}

/** The regions of each plan, by its code; or why OVH does not state them. */
type Availability = Row<ReadonlyMap<string, readonly string[]>>;

/**
 * Source: https://eu.api.ovh.com/console/ (get-/order/catalog/public/cloud, get-/cloud/order/rule/availability). Source of the
 * token: https://docs.ovhcloud.com/en/guides/manage-and-operate/api/manage-service-account.
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
    'The catalogue is public, and names the regions of older types only. The rules of availability name the regions of the ' +
    'others. If OVH answers these only to customers, the token is an OAuth 2.0 access token of a service account that may ' +
    '`GET /cloud/order/rule/availability`; it expires after an hour. Without a token these plans wait in quarantine, and ' +
    'Fleetbook reads the others. Only https://api.us.ovhcloud.com/?ovhSubsidiary=US has the regions of the US. Volumes are in the ' +
    'catalogue too; the default is `classic`. A volume without a region is left out. The price of outgoing traffic is that of the ' +
    'catalogue, if it names the region. Otherwise traffic costs nothing outside Asia-Pacific, as OVH’s price page says, and is ' +
    'unknown in Asia-Pacific. The price of further addresses is unknown: the catalogue states zero, the manager does not. Plans of ' +
    'managed databases are in the catalogue at the price of one node, and it does not state how many nodes a plan has. A region ' +
    'whose machines are all excluded has no plans, and no prices of volumes and traffic.',

  async *catalogue({ http }) {
    const query = http.base.searchParams.has('ovhSubsidiary') ? {} : { ovhSubsidiary: SUBSIDIARY };
    const { addons, locale } = (await http.json(CATALOG, Catalog, { query })).data;
    const read: Catalogue = { plans: new Map(), others: [], undescribed: [] };
    for (const [index, row] of addons.entries()) yield* readAddon(row, `addon ${index + 1}`, read);
    const plans = [...read.plans.values()];
    if (plans.every((plan) => plan.machines.length === 0)) throw nothingListed(CATALOG);
    const availability = yield* readAvailability(http, query);

    const sold = plans.flatMap((plan) =>
      plan.machines.map(({ planCode, row }) => {
        const regions = availability.value?.get(planCode) ?? [...plan.configured];
        return { name: plan.type, planCode, row, regions: new Set(regions) };
      }),
    );
    for (const code of new Set(sold.flatMap(({ regions }) => [...regions])))
      yield { kind: 'region', code, name: code };
    const located = new Set(sold.flatMap(({ name, regions }) => (regions.size > 0 ? [name] : [])));
    const selling = new Set<string>();
    for (const plan of sold) {
      if (plan.regions.size === 0) {
        yield nowhere(plan, availability, located);
        continue;
      }
      const items = offers(plan, locale.currencyCode);
      yield* items;
      // An unreadable machine may be for sale, and so may one at a price of zero.
      const isForSale = items.some(
        (item) => item.kind !== 'offer' || (item.offer.excluded ?? 'zero_price') === 'zero_price',
      );
      if (isForSale) for (const region of plan.regions) selling.add(region);
    }
    if (read.undescribed.length > 0) yield undescribed(read.undescribed);
    const prices = new RegionPrices();
    const { currencyCode: currency } = locale;
    const regionsOf = (planCode: string) => availability.value?.get(planCode);
    const places = { regionsOf, selling, currency };
    for (const addon of read.others) addVolume(prices, addon, places);
    addTraffic(prices, read.others, places);
    for (const addon of read.others) addPlan(prices, addon, places);
    yield* prices.items(['classic', 'classic-multiattach']);
  },
};

function* readAddon(
  row: unknown,
  unnamed: string,
  { plans, others, undescribed: unknown }: Catalogue,
): Generator<CatalogueItem> {
  const code = labelIn(row, 'planCode');
  const { type, paid, place = '' } = PLAN_CODE.exec(code ?? '')?.groups ?? {};
  const { value: addon, reason } = readRow(AddonKind, row);
  if (addon === undefined) {
    yield rejectedRow(code ?? unnamed, reason, { name: type });
    return;
  }
  const { planCode } = addon;
  if (addon.product !== 'publiccloud-instance') {
    others.push({ planCode, row });
    return;
  }
  if (type === undefined) {
    // Other payments, such as savings plans, are not on demand.
    if (isPaidByHour(row))
      yield ofNoMachine(planCode, 'planCode must be that of a type, such as b3-8.consumption');
    return;
  }
  const { reason: unusable } = readRow(Configured, row);
  if (unusable !== undefined) {
    yield rejectedRow(planCode, unusable, { name: type });
    return;
  }
  const key = JSON.stringify([type, place]);
  const plan = plans.get(key) ?? { type, configured: new Set(), machines: [] };
  plans.set(key, plan);
  for (const region of configuredRegions(row)) plan.configured.add(region);
  if (paid !== 'consumption') return;
  if (z.object({ blobs: z.null() }).safeParse(row).success) unknown.push(planCode);
  else plan.machines.push({ planCode, row: readRow(Machine, row) });
}

/** OVH may require a token: without one the result is the reason. A refused token ends the run, like any other failure. */
async function* readAvailability(
  http: SourceHttp,
  query: Readonly<Record<string, string>>,
): AsyncGenerator<RejectedRow, Availability> {
  const answer = await http.json(AVAILABILITY, Rules, { query }).catch((error: unknown) => {
    if (error instanceof SourceError && error.kind === 'misconfigured' && !http.hasCredentials) return error;
    throw error;
  });
  if (answer instanceof SourceError) return { reason: answer.message };
  const { plans } = answer.data;
  const regions = new Map<string, readonly string[]>();
  for (const [index, row] of plans.entries()) {
    const { value: rule, reason } = readRow(Rule, row, ['plans', index]);
    const code = labelIn(row, 'code');
    if (rule !== undefined) regions.set(rule.code, rule.regions);
    else {
      // If the rule is not about a machine, no machine has this name.
      const name = code?.replace(PLAN_CODE, '$<type>');
      yield rejectedRow(`rule ${code === undefined ? index + 1 : `of ${code}`}`, reason, { name });
    }
  }
  return { value: regions };
}

interface SoldPlan {
  readonly name: string;
  readonly planCode: string;
  readonly row: Row<Machine>;
  readonly regions: ReadonlySet<string>;
}

function offers({ name, planCode, row, regions }: SoldPlan, currency: string): readonly CatalogueItem[] {
  const items = orRejected(planCode, { name }, () => {
    const machine = valueIn(row);
    const { technical } = machine.blobs;
    const facts = { localDisk: localDisk(technical), network: technical.bandwidth?.level };
    const found = {
      name,
      cpu: technical.cpu.cores,
      ...memory(technical.memory.size, adapter.memoryUnit),
      price: { amount: hourlyAmount(machine.pricings), per: 'hour', currency } as const,
      facts,
    };
    return [...regions].map((regionCode) => offerItem({ regionCode, ...found }, exclusion(name, machine)));
  });
  return 'kind' in items ? [items] : items;
}

/**
 * Returns the item of a plan without a region. If the rules are closed, the stored machines of its type stay, unless another
 * plan of the type has regions: then they belong to that plan. If the rules are open, the plan is sold nowhere.
 */
function nowhere(
  { name, planCode }: SoldPlan,
  { reason: closed }: Availability,
  located: ReadonlySet<string>,
): RejectedRow {
  const reason =
    closed === undefined
      ? `is sold in no region: no configuration names one, and ${AVAILABILITY} lists it for none`
      : `no configuration names its regions, and ${closed}`;
  const row = ofNoMachine(planCode, reason);
  return { ...row, waits: true, ...(closed === undefined || located.has(name) ? {} : { name }) };
}

/** Returns one row for all plans without a description: they are many, with the same reason. */
function undescribed(codes: readonly string[]): RejectedRow {
  const named = codes.toSorted().slice(0, MOST_NAMED).join(', ');
  const more = codes.length > MOST_NAMED ? ` and ${codes.length - MOST_NAMED} more` : '';
  const reason = `blobs is null in ${codes.length} hourly addons: ${named}${more}`;
  return { ...ofNoMachine('addons without a description', reason), waits: true };
}

/** Returns a rejected row that protects no stored machine from counting as missing: no machine has its name. */
function ofNoMachine(key: string, reason: string): RejectedRow {
  return rejectedRow(key, reason, { name: key });
}
