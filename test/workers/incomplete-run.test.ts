/** A run that could read only some of its regions, with a real worker: it is repeated after minutes. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { sourceStatus } from '../../src/db/sources.ts';
import { startWorker } from '../../workers/main.ts';
import { machine, onDemand } from '../sources/providers/aws-payloads.ts';
import { YEARLY } from '../support/day.ts';
import { NO_RETRIES } from '../support/request-retries.ts';
import { until } from '../support/until.ts';
import { config, dueIn, opened, retryIsDue, retryNow, store, useServers } from './scene.ts';

useServers();

/** Price lists of AWS with two regions. The file of one of them may be missing. */
async function openAws() {
  let isMissing = true;
  const calls: Record<string, number> = {};
  const server = createServer(({ url = '' }, response) => {
    calls[url] = (calls[url] ?? 0) + 1;
    const json = (body: object, headers = {}) => response.writeHead(200, headers).end(JSON.stringify(body));
    const [, offer] = /^\/offers\/v1.0\/aws\/(\w+)\/current\/region_index.json$/.exec(url) ?? [];
    const codes = offer === 'AmazonEC2' ? ['us-east-1', 'us-east-2'] : ['elsewhere'];
    const regions = codes.map((code) => [code, { regionCode: code, currentVersionUrl: `/${code}.json` }]);
    if (offer !== undefined) return json({ regions: Object.fromEntries(regions) });
    if (url === '/us-east-2.json' && isMissing) return response.writeHead(404).end();
    const [, regionCode] = /^\/([\w-]+)\.json$/.exec(url) ?? [];
    const products = { A: machine('m5.large', { regionCode, locationType: 'AWS Region' }) };
    return json({ products, terms: { OnDemand: { A: onDemand('0.096') } } }, { etag: '"1"' });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    return() {
      isMissing = false;
    },
  };
}

it('the run states how many regions are unread, is repeated after minutes, and ends once all are read', async () => {
  const aws = await openAws();
  const lines: { msg: string; sourceId?: string }[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const given = config({ AWS_URL: aws.url, AWS_SCHEDULE: YEARLY });
  const sources = given.sources.filter(({ id }) => id === 'aws');
  const worker = opened.use(await startWorker({ ...given, sources }, logger, { requestRetries: NO_RETRIES }));
  const pauses: number[] = [];
  for (let attempts = 1; attempts <= 2; attempts++) {
    await until(async () => {
      const [slot] = await store.sql<{ failures: number }[]>`
        select failures from schedule_slots where schedule = 'aws'`;
      return slot?.failures === attempts;
    });
    pauses.push((await retryIsDue('aws')) / 60_000);
    if (attempts === 2) aws.return();
    await retryNow('aws');
  }
  // Randomly up to half less, and some seconds have passed.
  expect([pauses[0], pauses[1]].map((minutes = 0) => minutes > 2.3 && minutes <= 20)).toEqual([true, true]);
  const regions = async () => {
    const status = (await sourceStatus(store.db)).find(({ id }) => id === 'aws');
    return status?.regions.map(({ code, unreadSince }) => [code, unreadSince === null]);
  };
  await until(async () => (await dueIn('aws')) === null);
  expect(await regions()).toEqual([
    ['us-east-1', true],
    ['us-east-2', true],
  ]);
  const said = lines.filter(({ msg }) => /unread/.test(msg)).map(({ msg }) => msg.replace(/at \S+$/, 'at …'));
  expect(said).toEqual([
    'synced, with 1 of 2 regions unread',
    '1 of 2 regions unread; the next attempt is at …',
    'synced, with 1 of 2 regions unread',
    '1 of 2 regions unread; the next attempt is at …',
  ]);
  const causes = await store.sql`select outcome from sync_runs where source_id = 'aws' order by id`;
  expect(causes.map(({ outcome }) => outcome)).toEqual(['changed', 'unchanged', 'changed']);
  const completed = await until(async () => {
    const jobs = await worker.queues.sync.getCompleted();
    return jobs.length === 3 && jobs;
  });
  expect(completed.map(({ returnvalue }) => returnvalue.missing).sort()).toEqual([
    '1 of 2 regions unread',
    '1 of 2 regions unread',
    undefined,
  ]);
});
