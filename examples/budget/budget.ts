/**
 * Computes the monthly price of the machines in a file, and fails if it exceeds the budget in the same file. Exit codes: 0
 * within the budget, 1 above it, 2 if the price is unknown.
 */
import { readFile } from 'node:fs/promises';
import { FleetbookClient } from '@fleetbook/client';

interface Plan {
  readonly budget: { readonly month: number; readonly currency: string };
  readonly machines: readonly {
    readonly provider: string;
    /** Code of the region at the provider. */
    readonly region: string;
    readonly name: string;
    readonly count: number;
  }[];
}

const MINUTES_A_MONTH = 730 * 60;
const { FLEETBOOK_URL = '', FLEETBOOK_TOKEN = '' } = process.env;
const [file = 'machines.json'] = process.argv.slice(2);

const fleetbook = new FleetbookClient({ url: FLEETBOOK_URL, token: FLEETBOOK_TOKEN });
const { budget, machines } = JSON.parse(await readFile(file, 'utf8')) as Plan;
const { data: providers, currency } = await fleetbook.providers();
if (currency !== budget.currency) unknown(`prices are in ${currency}, the budget is in ${budget.currency}`);

let sum = 0;
for (const { provider: providerName, region: code, name, count } of machines) {
  const provider = providers.find((each) => each.name === providerName);
  const region = provider?.regions.find((each) => each.code === code);
  if (!provider || !region) unknown(`${file}: ${providerName} has no region ${code}`);
  const { data: offers } = await fleetbook.machines(provider.id, region.id);
  const machine = offers.find((each) => each.name === name);
  if (!machine) unknown(`${file}: ${providerName} does not offer ${name} in ${code} now`);
  const price = machine.price * MINUTES_A_MONTH * count;
  sum += price;
  console.log(`${count} × ${name}, ${providerName} ${code}: ${price.toFixed(2)} ${currency} a month`);
}

const isWithin = sum <= budget.month;
console.log(
  `${sum.toFixed(2)} of ${budget.month.toFixed(2)} ${currency} a month: ${isWithin ? 'within' : 'above'} the budget`,
);
process.exitCode = isWithin ? 0 : 1;

function unknown(problem: string): never {
  console.error(problem);
  process.exit(2);
}
