import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { composeWorker } from '../../src/app/worker.ts';
import { readConfig } from '../../src/config/config.ts';
import { SAMPLE_HETZNER_TOKEN, startSampleUpstream } from '../../src/dev/sample/upstream.ts';
import { untilDayLasts } from '../support/day.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';

const ecbFile = (day: string, usd: string) =>
  `<gesmes:Envelope><Cube><Cube time='${day}'><Cube currency='USD' rate='${usd}'/></Cube></Cube></gesmes:Envelope>`;
const today = () => new Date().toISOString().slice(0, 10);
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

/** A database whose Hetzner catalogue needs reference rates; `rates` is the bank's next answer. */
async function scene() {
  const closing = new AsyncDisposableStack();
  const database = closing.use(await createDatabase());
  const sample = closing.use(await startSampleUpstream());
  const bank = closing.use(await fakeUpstream());
  const config = readConfig({
    DATABASE_URL: database.url,
    REDIS_URL: 'redis://127.0.0.1:1',
    HETZNER_URL: sample.hetznerUrl,
    HETZNER_TOKEN: SAMPLE_HETZNER_TOKEN,
    EXCHANGE_RATES_URL: `${bank.url}/rates.xml`,
  });
  const worker = closing.use(composeWorker(config, pino({ level: 'silent' })));
  const run = async (id: string) => {
    const source = config.sources.find((candidate) => candidate.id === id);
    if (!source) throw new Error(`no source ${id}`);
    return worker.runSource(source);
  };
  const [history, version, prices] = [
    async () => (await worker.store.sql`select count(*)::int as n from machine_prices`)[0]?.n,
    async () => (await worker.store.sql`select sum(version)::int as n from regions`)[0]?.n,
    async () =>
      (
        await worker.store.sql`
        select count(*) filter (where excluded_reason is null)::int as published,
               count(*) filter (where excluded_reason = 'no_exchange_rate')::int as held,
               max(price * 60 / source_amount)::float as rate from machines`
      )[0],
  ];
  return {
    config,
    run,
    history,
    version,
    prices,
    answer: (day: string, usd: string) => bank.expect({ path: '/rates.xml' }, { raw: ecbFile(day, usd) }),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

describe('prices in another currency than the published one', () => {
  it('need a source of reference rates, unless the rate is configured', async () => {
    await using here = await scene();
    expect(here.config.sources.map(({ id, kind }) => [id, kind])).toEqual([
      ['hetzner', 'catalogue'],
      ['exchange-rates', 'rates'],
    ]);
    expect(readConfig({ HETZNER_URL: 'http://x', CATALOGUE_RATES: 'EUR:1.1' }).sources).toHaveLength(1);
    expect(readConfig({ HETZNER_URL: 'http://x', CATALOGUE_CURRENCY: 'EUR' }).sources).toHaveLength(1);
  });

  it('are held until there is a rate; a new rate changes prices and versions but is no price change', async () => {
    await using here = await scene();
    await here.run('hetzner');
    expect(await here.prices()).toMatchObject({ published: 0, rate: null });

    here.answer(today(), '1.10');
    expect(await here.run('exchange-rates')).toMatchObject({
      outcome: 'changed',
      counts: { seen: 1, added: 1 },
    });
    await here.run('hetzner');
    const { published, held, rate } = (await here.prices()) ?? {};
    expect(published).toBeGreaterThan(20);
    expect({ held, rate }).toEqual({ held: 0, rate: expect.closeTo(1.1, 9) });
    const [history, version] = [await here.history(), await here.version()];

    here.answer(today(), '1.20');
    await here.run('exchange-rates');
    expect(await here.run('hetzner')).toMatchObject({ outcome: 'changed', counts: { added: 0 } });
    expect(await here.prices()).toMatchObject({ published, rate: expect.closeTo(1.2, 9) });
    expect(await here.history()).toBe(history);
    expect(await here.version()).toBeGreaterThan(version);
  });

  it('keep their last value if the rates are older than seven days', async () => {
    await untilDayLasts();
    await using here = await scene();
    here.answer(daysAgo(7), '1.10');
    await here.run('exchange-rates');
    await here.run('hetzner');
    const before = await here.prices();
    expect(before?.published).toBeGreaterThan(20);
    await using old = await scene();
    old.answer(daysAgo(8), '1.10');
    await old.run('exchange-rates');
    await old.run('hetzner');
    expect(await old.prices()).toMatchObject({ published: 0 });
  });

  it('never replace later rates by earlier ones', async () => {
    await using here = await scene();
    here.answer(today(), '1.10');
    await here.run('exchange-rates');
    here.answer(daysAgo(1), '9.99');
    expect(await here.run('exchange-rates')).toMatchObject({ outcome: 'unchanged' });
    await here.run('hetzner');
    expect(await here.prices()).toMatchObject({ rate: expect.closeTo(1.1, 9) });
  });
});
