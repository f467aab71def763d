import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { FACT_FIELDS } from '../../domain/machine-facts.ts';
import { columnTable, PriceColumns, requiredColumns } from '../price-columns.ts';
import { PRICE_LIST, priceRowsIn } from '../price-rows.ts';
import { label } from '../schema/fields.ts';
import { offerItem, rejectedRow } from '../schema/items.ts';
import { WrongUnits } from '../schema/left-out.ts';
import { labelIn, type Row, readRow } from '../schema/rows.ts';
import type { CatalogueItem, GenericCatalogueAdapter } from '../source.ts';

const Options = z.strictObject({
  provider: label.describe('name of the provider, as readers see it'),
});

/** Names of one region that a message lists if its rows differ. */
const NAMES_SHOWN = 5;

type Priced = z.infer<typeof PriceColumns>;

export const adapter: GenericCatalogueAdapter = {
  id: 'price-list',
  options: Options,
  endpoints: ['{url}'],
  readsFiles: true,
  credentials: 'bearer',
  currencyFrom: 'as each row says',
  facts: FACT_FIELDS,
  schedule: '52 * * * *',
  notes: `The source's URL, or a path on this machine, is the list: CSV (RFC 4180, UTF-8, the first line names the columns)
or a JSON array of objects with these fields. Other columns and the order of columns and rows are ignored. An unusable row
is rejected; the reason names its line and column, and the row's machine keeps its last values. To remove a machine from
the catalogue, fill \`excluded\`. If rows name one region differently, the region keeps its name. A list that is cut,
broken or empty changes nothing. A memory that is no whole number of GB or GiB is not published. If a division by 1000
instead of 1024 explains it, such as 16000 \`MiB\` for 16 \`GB\`, one rejected row says so. To replace a file, rename a new file over it: then no half of it is ever read.

${columnTable(PriceColumns)}

\`\`\`csv
region_code,region_name,name,cpu,ram,ram_unit,price,per,currency,excluded
dc1,"Hall 1, Basel",m.small,2,4,GiB,0.021,hour,CHF,
dc1,,m.gpu,8,64,GiB,1.40,hour,CHF,accelerated
\`\`\``,

  async *catalogue({ http }) {
    const names = new Map<string, Map<string, string>>();
    const wrongUnits = new WrongUnits();
    const answer = await http.streamIfModified('', PRICE_LIST);
    if ('unmodified' in answer) {
      yield { kind: 'unmodified', validator: answer.unmodified };
      return;
    }
    for await (const { at, row, problem } of priceRowsIn(answer, requiredColumns(PriceColumns))) {
      const read: Row<Priced> = problem === undefined ? readRow(PriceColumns, row) : { reason: problem };
      const { value, reason } = read;
      if (value === undefined) {
        const [name, regionCode] = [labelIn(row, 'name'), labelIn(row, 'region_code')];
        const key = name === undefined || regionCode === undefined ? at : `${name}@${regionCode}`;
        yield rejectedRow(key, `${at}: ${reason}`, { name, regionCode });
        continue;
      }
      const given = names.get(value.region_code) ?? new Map<string, string>();
      names.set(value.region_code, given);
      if (value.region_name != null && !given.has(value.region_name) && given.size < NAMES_SHOWN)
        given.set(value.region_name, at);
      const item = offer(value);
      wrongUnits.note(item);
      yield item;
    }
    yield* wrongUnits.rows();
    for (const [code, given] of names) yield regionNamed(code, given);
    if (answer.validator !== undefined) yield { kind: 'validator', validator: answer.validator };
  },
};

function offer(row: Priced): CatalogueItem {
  const { region_code: regionCode, name, cpu, price: amount, per, currency } = row;
  const { architecture, generation, cpu_kind: cpuKind, local_disk: localDisk, network } = row;
  const { included_traffic: includedTraffic, included_ipv4: includedIpv4 } = row;
  const { orderable_until: orderableUntil, retires_at: retiresAt } = row;
  const included = { includedTraffic, includedIpv4 };
  const ends = { orderableUntil, retiresAt };
  const facts = { architecture, generation, cpuKind, localDisk, network, ...included, ...ends };
  const machine = { name, cpu, ...memory(row.ram, row.ram_unit), price: { amount, per, currency }, facts };
  return offerItem({ regionCode, ...machine }, row.excluded);
}

/** @param given each name in the region's rows, with its first row */
function regionNamed(code: string, given: ReadonlyMap<string, string>): CatalogueItem {
  const [name = code, ...others] = given.keys();
  if (others.length === 0) return { kind: 'region', code, name };
  const names = [...given].map(([each, at]) => `${JSON.stringify(each)} on ${at}`).join(', ');
  const problem = `region_name must be the same on all rows of ${code}; it is ${names}`;
  return rejectedRow(code, problem, { regionCode: code });
}
