import { z } from 'zod';
import type { ExclusionReason } from '../../domain/exclusion.ts';
import { memory } from '../../domain/memory.ts';
import { isPositive, type SourcePrice } from '../../domain/price.ts';
import { amountIn, count, currencyCode, label, quantity } from '../fields.ts';
import { nothingListed } from '../listing.ts';
import { labelIn, type Row, readRow, rejectedRow } from '../rows.ts';
import type { CatalogueAdapter, CatalogueItem } from '../source.ts';

const CATALOG = '/v1/order/catalog/public/cloud';

/** Whose prices are read (Ireland's, in EUR), unless the source's URL names another: `?ovhSubsidiary=US`. */
const SUBSIDIARY = 'IE';

/** `b3-8.consumption`, `b3-8.monthly.postpaid`, `b3-8.consumption.3AZ`: the type, how it is paid and the kind of place. */
const PLAN_CODE = /^(?<type>.+?)\.(?<paid>consumption|monthly\.postpaid|monthly)(?<place>\..+)?$/;

/** The document has 8 MB; other products' addons are most of it. */
const Catalog = z.object({
  locale: z.object({ currencyCode }),
  addons: z.array(z.unknown()),
});

const Addon = z.object({ planCode: label, product: label });

/** Many of the addons that are paid by the hour name no region; that of the same machine by the month may. */
const Configured = z.object({
  configurations: z.array(z.object({ name: z.string(), values: z.array(label).nullish() })).nullish(),
});

const Pricing = z.object({
  /** In units of 10^-8 of the currency: 6810000 is 0.0681. */
  price: amountIn('0.00000001'),
  intervalUnit: z.string(),
  capacities: z.array(z.string()),
});

const Machine = z.object({
  pricings: z.array(Pricing),
  blobs: z.object({
    tags: z.array(z.string()),
    technical: z.object({
      cpu: z.object({ cores: count }),
      /** GB, and meant so: the flavor of b3-8, which has 8 here, has a `ram` of 8000 MB in the cloud's own API. */
      memory: z.object({ size: quantity }),
      gpu: z.object({ number: z.number().nullish() }).nullish(),
      os: z.object({ family: z.string() }).nullish(),
    }),
  }),
});
type Machine = z.infer<typeof Machine>;

/** One type in one kind of place (ordinary regions, those of three zones, local zones): a price for all of them. */
interface Plan {
  readonly type: string;
  /** Empty for ordinary regions. */
  readonly place: string;
  readonly regions: Set<string>;
  /** What is paid by the hour. More than one is the same machine twice, which the sync refuses. */
  readonly machines: { readonly planCode: string; readonly row: Row<Machine> }[];
}

/** Source: https://eu.api.ovh.com/console/?section=%2Forder&branch=v1#get-/order/catalog/public/cloud. */
export const adapter: CatalogueAdapter = {
  id: 'ovh',
  provider: { id: 4, name: 'OVH' },
  baseUrl: 'https://eu.api.ovh.com',
  endpoints: [CATALOG],
  credentials: 'none',
  memoryUnit: 'GB',
  currency: 'EUR',
  schedule: '42 */6 * * *',

  async *catalogue({ http }) {
    const query = http.base.searchParams.has('ovhSubsidiary') ? {} : { ovhSubsidiary: SUBSIDIARY };
    const { addons, locale } = (await http.json(CATALOG, Catalog, { query })).data;
    const byCode = new Map<string, Plan>();
    for (const [index, row] of addons.entries()) yield* readAddon(row, `addon ${index + 1}`, byCode);
    const plans = [...byCode.values()];
    if (plans.every((plan) => plan.machines.length === 0)) throw nothingListed(CATALOG);

    for (const code of new Set(plans.flatMap((plan) => [...plan.regions]))) {
      yield { kind: 'region', code, name: code };
    }
    const told = new Set(
      plans.filter(({ place, regions }) => place === '' || regions.size > 0).map(({ type }) => type),
    );
    for (const plan of plans) yield* offers(plan, locale.currencyCode, told);
  },
};

/** Puts an addon that is a machine, or that says where one is sold, with those of the same type and kind of place. */
function* readAddon(row: unknown, unnamed: string, plans: Map<string, Plan>): Generator<CatalogueItem> {
  const code = labelIn(row, 'planCode');
  const { type, paid, place = '' } = PLAN_CODE.exec(code ?? '')?.groups ?? {};
  const { value: addon, reason } = readRow(Addon, row);
  if (addon === undefined) {
    yield rejectedRow(code ?? unnamed, reason, { name: type });
    return;
  }
  // Other ways to pay (savings plans) are not on demand; storage, networks and the like are no machines.
  if (addon.product !== 'publiccloud-instance' || type === undefined) return;
  const { value: configured, reason: unusable } = readRow(Configured, row);
  if (configured === undefined) {
    yield rejectedRow(addon.planCode, unusable, { name: type });
    return;
  }
  const key = JSON.stringify([type, place]);
  const plan = plans.get(key) ?? { type, place, regions: new Set(), machines: [] };
  plans.set(key, plan);
  for (const { name, values } of configured.configurations ?? []) {
    if (name === 'region') for (const region of values ?? []) plan.regions.add(region);
  }
  if (paid === 'consumption' && !isUndescribed(row)) {
    plan.machines.push({ planCode: addon.planCode, row: readRow(Machine, row) });
  }
}

/** `blobs` is null in addons that are kept for those who have them, without a word on what they are. */
function isUndescribed(row: unknown): boolean {
  return z.object({ blobs: z.null() }).safeParse(row).success;
}

/** `told` are the types of which something is said without the plans of other kinds of place. */
function* offers(plan: Plan, currency: string, told: ReadonlySet<string>): Generator<CatalogueItem> {
  const { type: name, regions } = plan;
  for (const { planCode, row } of plan.machines) {
    const { value: machine, reason } = row;
    const { price, reason: unpriced } = machine === undefined ? { reason } : hourlyPrice(machine, currency);
    if (machine === undefined || price === undefined) {
      yield rejectedRow(planCode, reason ?? unpriced ?? '', { name });
      continue;
    }
    const { technical } = machine.blobs;
    const { ram, unit: ramUnit } = memory(technical.memory.size, adapter.memoryUnit);
    const excluded = exclusion(name, machine, price);
    for (const regionCode of regions) {
      const offer = { regionCode, name, cpu: technical.cpu.cores, ram, ramUnit, price };
      yield { kind: 'offer', offer: excluded === undefined ? offer : { ...offer, excluded } };
    }
    const nowhere = regions.size === 0 && (plan.place === '' || !told.has(name));
    if (nowhere && excluded === undefined) {
      const problem =
        'configurations of no addon say in which regions it is sold; where that is is not guessed';
      yield rejectedRow(planCode, problem, { name });
    }
  }
}

function hourlyPrice(machine: Machine, currency: string): { price?: SourcePrice; reason?: string } {
  const hourly = machine.pricings.filter(
    ({ intervalUnit, capacities }) => intervalUnit === 'hour' && capacities.includes('consumption'),
  );
  const [amount, ...others] = new Set(hourly.map((pricing) => pricing.price));
  if (amount !== undefined && others.length === 0) return { price: { amount, per: 'hour', currency } };
  return { reason: `pricings must have one price for an hour of consumption; it has ${hourly.length}` };
}

function exclusion(name: string, machine: Machine, price: SourcePrice): ExclusionReason | undefined {
  const { tags, technical } = machine.blobs;
  if (technical.gpu != null && technical.gpu.number !== 0) return 'accelerated';
  // The same machine once more, with the price of a Windows licence in its own.
  if (technical.os?.family === 'windows' || name.startsWith('win-')) return 'licensed';
  if (tags.includes('coming_soon')) return 'unavailable';
  if (tags.includes('legacy') || !tags.includes('active')) return 'deprecated';
  return isPositive(price.amount) ? undefined : 'zero_price';
}
