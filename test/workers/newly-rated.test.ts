/** Sources whose machines lack an exchange rate, with real workers. The sources run once a year. */
import { expect, it } from 'vitest';
import { missingRates } from '../../src/db/quarantine.ts';
import { sourceStatus } from '../../src/db/sources.ts';
import { requestAttempt } from '../../src/sync/runs/slots.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { until } from '../support/until.ts';
import { opened, runs, start, store, useServers } from './scene.ts';

useServers();

const published = async () =>
  (await sourceStatus(store.db)).find(({ id }) => id === 'hetzner')?.published ?? 0;

/** A worker without a rate that has read Hetzner's catalogue, priced in euros, and published none of it. */
async function startUnrated(EXCHANGE_RATES_URL: string) {
  const worker = await start({ CATALOGUE_RATES: '', EXCHANGE_RATES_URL });
  await until(async () => (await runs()).some(({ source }) => source === 'hetzner'));
  expect(await published()).toBe(0);
  return worker;
}

it('publishes machines at the start of a worker that has the rate in CATALOGUE_RATES', async () => {
  const worker = await startUnrated('http://127.0.0.1:1/rates.xml');
  await worker[Symbol.asyncDispose]();
  await start({ CATALOGUE_RATES: 'EUR:1.1' });
  await until(async () => (await published()) > 20);
  expect(await missingRates(store.db)).toEqual(new Map());
});

it('publishes machines as soon as a run of the reference rates brings the rate', async () => {
  const bank = opened.use(await fakeUpstream());
  bank.expect({ path: '/rates.xml' }, { status: 404 });
  await startUnrated(`${bank.url}/rates.xml`);
  const day = new Date().toISOString().slice(0, 10);
  const raw = `<gesmes:Envelope><Cube><Cube time='${day}'><Cube currency='USD' rate='1.1'/></Cube></Cube></gesmes:Envelope>`;
  bank.expect({ path: '/rates.xml' }, { raw });
  const slot = { schedule: 'exchange-rates', slot: new Date().toISOString() };
  await requestAttempt(store.db, slot, { cause: 'hand' });
  await until(async () => (await published()) > 20);
  expect(await missingRates(store.db)).toEqual(new Map());
});
