/** `npm run bench -- console`: the operators' console over many rows. The routes are in console/addresses.ts. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Sql } from '../src/db/connection/connect.ts';
import { freePort } from '../src/processes/port.ts';
import { hasChromium, launchBrowser } from '../test/support/browser.ts';
import { type Address, addresses, type Facts } from './console/addresses.ts';
import { FIRST_PROVIDER, fillConsole, sourceId, sourcesFile } from './console/fill.ts';
import { startProgram } from './read/program.ts';
import { type Bar, median, quantile } from './support/bar.ts';
import { count, flag, openStage, readOptions, report, say } from './support/harness.ts';

const TOKEN = 'the-operators-token-of-the-benchmark';
const SCRIPT_BYTES = 150_000;
const FIRST_VIEW_MS = 1000;
const LOADS = 7;
const headers = { authorization: `Bearer ${TOKEN}` };

const { requests, quick, json } = readOptions(
  `The operators' console over 1,000,000 machines, 200 sources with a day of runs, 20,000 organizations and 50 held batches: each route of
it, the first view in Chromium, and the size of its script.`,
  {
    quick: flag('a tenth of the machines and organizations'),
    requests: count('requests of each route', 9),
    json: flag('prints JSON'),
  },
);
const part = quick ? 10 : 1;
const size = {
  machines: 1_000_000 / part,
  sources: 200,
  organizations: 20_000 / part,
  held: 50,
};
report(await measure(), { json, size });

async function measure(): Promise<Bar[]> {
  await using stage = await openStage();
  const { folder, redisUrl, sql, url } = stage;
  say(`${size.machines} machines, ${size.organizations} organizations`);
  await fillConsole(sql, size, say);
  const file = join(folder, 'sources.json');
  await writeFile(file, JSON.stringify(sourcesFile(size)));
  const server = stage.use(
    await startProgram({
      args: [join(import.meta.dirname, 'console/server.ts')],
      env: {
        DATABASE_URL: url,
        REDIS_URL: redisUrl,
        FLEETBOOK_CONFIG: file,
        CATALOGUE_CURRENCY: 'EUR',
        OPS_TOKEN: TOKEN,
        OPS_PORT: String(await freePort()),
      },
      logFile: join(folder, 'server.log'),
      core: 'any',
    }),
  );
  const origin = `http://127.0.0.1:${server.details.port}`;
  const found: Bar[] = [];
  for (const address of addresses(await factsOf(sql))) {
    found.push(await measureRoute(origin, address));
    say(`${address.what}: ${Math.round(found.at(-1)?.found ?? 0)} ms`);
  }
  return [...(await measureScript(origin)), ...(await measureFirstView(origin, sql)), ...found];
}

async function factsOf(sql: Sql): Promise<Facts> {
  const [row] = await sql<{ batch: number; machine: number }[]>`
    select (select min(id) from held_batches) as batch,
      (select min(machine_id) from machine_prices where valid_to is not null) as machine`;
  return {
    batch: row?.batch ?? 0,
    machine: row?.machine ?? 0,
    source: sourceId(0),
    largest: FIRST_PROVIDER,
    large: FIRST_PROVIDER + 2,
    small: FIRST_PROVIDER + 99,
  };
}

/** @throws Error for an answer other than a page's */
async function measureRoute(origin: string, { what, path, limit }: Address): Promise<Bar> {
  const times: number[] = [];
  // The first request finds nothing prepared; the maximum includes it.
  for (let i = 0; i < requests; i++) {
    const began = performance.now();
    const response = await fetch(`${origin}${path}`, { headers });
    const body = await response.text();
    times.push(performance.now() - began);
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${body.slice(0, 200)}`);
  }
  const note = `p95 ${Math.round(quantile(times, 0.95))} ms, highest ${Math.round(Math.max(...times))} ms`;
  return { what, found: median(times), unit: 'ms', limit, note };
}

/** Bytes that a browser loads before it shows anything, compressed. */
async function measureScript(origin: string): Promise<Bar[]> {
  const page = await (await fetch(`${origin}/`, { headers })).text();
  let bytes = 0;
  for (const [, path] of page.matchAll(/(?:src|href)="(\/assets\/[^"]+\.(?:js|css))"/g)) {
    // Not with fetch, which decompresses.
    const sent = await fetch(`${origin}${path}`, { headers: { ...headers, 'accept-encoding': 'gzip' } });
    const length = Number(sent.headers.get('content-length'));
    if (!(length > 0)) throw new Error(`${path} has no length; is the console built?`);
    bytes += length;
  }
  if (bytes === 0) throw new Error('the page names no script; run npm run build:console');
  return [{ what: 'script and styles, gzip', found: bytes / 1000, unit: 'kB', limit: SCRIPT_BYTES / 1000 }];
}

/** From the address to the table of sources. */
async function measureFirstView(origin: string, sql: Sql): Promise<Bar[]> {
  const what = 'first view in Chromium: the table of sources is there';
  const bar = { what, unit: 'ms', limit: FIRST_VIEW_MS };
  if (!hasChromium) return [{ ...bar, note: 'there is no /usr/bin/chromium' }];
  const browser = await launchBrowser();
  const times: number[] = [];
  try {
    // One window: a new one loads pages of the browser itself, which take more CPU time than the console.
    const context = await browser.newContext({ extraHTTPHeaders: headers });
    const session = await context.newCDPSession(await context.newPage());
    for (let i = 0; i <= LOADS; i++) {
      await session.send('Network.clearBrowserCache');
      // The server reads the overview again after a change.
      await sql`update sources set fence = fence + 1 where id = ${sourceId(0)}`;
      const page = await context.newPage();
      const began = performance.now();
      await page.goto(`${origin}/`, { waitUntil: 'commit' });
      await page
        .locator('tbody tr')
        .nth(size.sources - 1)
        .waitFor({ state: 'attached' });
      // During the first load the window is still new.
      if (i > 0) times.push(performance.now() - began);
      await page.close();
    }
  } finally {
    await browser.close();
  }
  return [{ ...bar, found: median(times), note: `highest ${Math.round(Math.max(...times))} ms` }];
}
