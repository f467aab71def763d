/** Prints the cheapest machine of each provider with at least the CPUs and GB of memory of the command line. */
import { FleetbookClient } from '@fleetbook/client';

const { FLEETBOOK_URL = 'http://127.0.0.1:3000', FLEETBOOK_TOKEN = '' } = process.env;
const [cpu = '2', ram = '4'] = process.argv.slice(2);

const fleetbook = new FleetbookClient({ url: FLEETBOOK_URL, token: FLEETBOOK_TOKEN });
const { data, currency } = await fleetbook.recommend({
  cpu: Number(cpu),
  ram: Number(ram),
  ram_unit: 'Decimal',
  hours: 730,
});
for (const { machine, total } of data.recommendations) {
  console.log(
    `${machine.provider.name}: ${machine.name} in ${machine.region.name}, ${total?.toFixed(2) ?? 'an unknown amount of'} ${currency} a month`,
  );
}
