import { z } from 'zod';
import { asOfIn } from '../http/headers.ts';
import { nothingListed } from '../http/lists.ts';
import { amount, count, currencyCode, label, oneOf, someRows } from '../schema/fields.ts';
import { offerItem, orRejected, unusableRegion } from '../schema/items.ts';
import { labelIn, parseRow, readRow, unusable } from '../schema/rows.ts';
import {
  badAnswer,
  type CatalogueItem,
  type GenericCatalogueAdapter,
  misconfigured,
  SourceError,
  type SourceHttp,
} from '../source.ts';

const PROVIDERS = '/v1/providers';
const MACHINES = '/v1/machines';
/** If more regions fail, the other instance has a problem, and each further attempt takes time. */
const MOST_UNREAD = 3;

const Options = z.strictObject({
  provider: label.describe(
    "name of the provider whose machines are read, as the other instance's `/v1/providers` has it",
  ),
  currency: currencyCode
    .default('USD')
    .describe("the other instance's `CATALOGUE_CURRENCY`; `USD` when absent"),
});

const Provider = z.object({ id: count, name: label, regions: z.array(z.unknown()) });
type Provider = z.infer<typeof Provider>;

const Region = z.object({ id: count, name: label, code: label });
type Region = z.infer<typeof Region>;

const Reference = z.object({ id: count });
const Machine = z.object({
  name: label,
  cpu: count,
  ram: count,
  ram_unit: oneOf(['Binary', 'Decimal']),
  /** Per minute. */
  price: amount,
  provider: Reference,
  region: Reference,
});

export const adapter: GenericCatalogueAdapter = {
  id: 'fleetbook',
  options: Options,
  endpoints: [PROVIDERS, MACHINES],
  readsFiles: false,
  credentials: 'bearer',
  currencyFrom: 'the option `currency`',
  schedule: '*/15 * * * *',
  notes: `Reads one provider of another Fleetbook, with a token of that instance that has \`machines:read\`. Configure one
source for each provider. Machines and regions get ids of this database; known providers have the same id everywhere. A
machine that the other instance excludes counts as missing here, and is retired after three good runs, without the
reason. Prices are per minute as published there, with its exchange rates. The freshness is the one that the other
instance states (\`Fleetbook-As-Of\`). A region without that header is not read: a gateway in between has to pass the
header on.`,

  async *catalogue({ http, options }) {
    const { provider: name, currency } = Options.parse(options);
    const { provider, asOf } = await providerNamed(http, name);
    yield { kind: 'as-of', time: asOf };
    let failed: unknown;
    let [unread, read, seen] = [0, 0, 0];
    for (const [index, row] of provider.regions.entries()) {
      const { value: region, reason } = readRow(Region, row, ['regions', index]);
      if (region === undefined) {
        const code = labelIn(row, 'code');
        yield unusableRegion(code, `region ${index + 1}`, reason);
        continue;
      }
      yield { kind: 'region', code: region.code, name: region.name };
      try {
        const query = { provider: provider.id, region: region.id };
        const { data, headers } = await http.json(MACHINES, z.array(z.unknown()), { query });
        yield { kind: 'as-of', time: asOfIn(headers, MACHINES), regionCode: region.code };
        for (const [position, machine] of data.entries())
          yield itemOf(machine, position, provider, region, currency);
        read += 1;
        seen += data.length;
      } catch (error) {
        // A Retry-After applies to the whole instance.
        if (!(error instanceof SourceError) || error.retryAfterMs !== undefined) throw error;
        unread += 1;
        if (unread > MOST_UNREAD) throw error;
        yield { kind: 'unread', regionCode: region.code, reason: error.message };
        failed ??= error;
      }
    }
    if (read === 0 && failed !== undefined) throw failed;
    if (seen === 0 && read === provider.regions.length)
      throw nothingListed(read === 0 ? `${PROVIDERS}: ${name}` : MACHINES);
  },
};

async function providerNamed(http: SourceHttp, name: string): Promise<{ provider: Provider; asOf: string }> {
  const { data, headers } = await http.json(PROVIDERS, someRows);
  const names = data.map((row) => labelIn(row, 'name'));
  const index = names.findIndex((each) => each?.toLowerCase() === name.toLowerCase());
  const unnamed = names.indexOf(undefined);
  if (index < 0 && unnamed < 0) {
    throw misconfigured(
      `${PROVIDERS} lists no provider ${JSON.stringify(name)}; the option provider must be one of ${names.join(', ')}`,
    );
  }
  const at = index < 0 ? unnamed : index;
  const { value, reason } = readRow(Provider, data[at], [at]);
  if (value === undefined) throw badAnswer(`${PROVIDERS}: ${reason}`);
  return { provider: value, asOf: asOfIn(headers, PROVIDERS) };
}

function itemOf(
  row: unknown,
  position: number,
  provider: Provider,
  region: Region,
  currency: string,
): CatalogueItem {
  const { code: regionCode } = region;
  const known = { name: labelIn(row, 'name'), regionCode };
  return orRejected(`${known.name ?? `machine ${position + 1}`}@${regionCode}`, known, () => {
    const { name, cpu, ram, ram_unit: ramUnit, ...machine } = parseRow(Machine, row);
    if (machine.provider.id !== provider.id || machine.region.id !== region.id) {
      const requested = `requested provider.id ${provider.id} and region.id ${region.id}`;
      unusable(`${requested}, got ${machine.provider.id} and ${machine.region.id}`);
    }
    const price = { amount: machine.price, per: 'minute', currency } as const;
    return offerItem({ regionCode, name, cpu, ram, ramUnit, price });
  });
}
