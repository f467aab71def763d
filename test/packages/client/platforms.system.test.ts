/** The client against a real reader: in Node, with only web globals, and in a browser from another origin. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createContext, runInContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { FleetbookClient } from '../../../packages/client/src/index.ts';
import { createToken, revokeToken } from '../../../src/db/tokens.ts';
import { SCOPES, type Scope } from '../../../src/domain/scope.ts';
import { buildApp } from '../../../src/http/app.ts';
import { listen } from '../../http/harness.ts';
import { addMachines } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { CHROMIUM, hasChromium, launchBrowser } from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import { type ClientBundle, clientBundle } from './client-bundle.ts';
import { FakeExtensions } from './fake-extensions.ts';

const scene = sceneForEachTest();
let bundle: ClientBundle;
beforeAll(async () => {
  bundle = await clientBundle();
});

async function served(corsOrigins: readonly string[] = []) {
  await scene.publisher.publishDirty();
  const app = buildApp({
    ...(await scene.linkedReader()),
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1.2.3',
    corsOrigins,
    limits: { maxEventLoopDelayMs: 0 },
  });
  const url = `http://127.0.0.1:${await listen(app)}`;
  const token = (scopes: readonly Scope[] = SCOPES) =>
    createToken(scene.store.db, { organizationId: scene.sample.a, scopes });
  return { url, token, [Symbol.asyncDispose]: () => app.close() };
}

const sendPage = (request: IncomingMessage, response: ServerResponse) => {
  const isModule = request.url === '/client.js';
  response.writeHead(200, { 'content-type': isModule ? 'text/javascript' : 'text/html' });
  response.end(isModule ? bundle.module : '<!doctype html><link rel=icon href=data:,>');
};

describe('in Node', () => {
  it('every operation returns the reader’s answer', async () => {
    await addMachines(scene.sql, scene.sample.region, 3);
    await using api = await served();
    const { token } = await api.token();
    const client = new FleetbookClient({ url: api.url, token });
    const raw = async (path: string) =>
      (await fetch(`${api.url}${path}`, { headers: { authorization: `Bearer ${token}` } })).json();
    const { provider, region, small } = scene.sample;
    const answers = {
      '/v1/providers': await client.providers(),
      [`/v1/machines?provider=${provider}&region=${region}`]: await client.machines(provider, region),
      [`/v1/machines/${small}`]: await client.machine(small),
      [`/v1/machines/${small}/prices`]: await client.prices(small),
      '/v1/clusters': await client.clusters(),
      '/v1/clusters/cluster-test': await client.cluster('cluster-test'),
    };
    for (const [path, { data, currency, requestId }] of Object.entries(answers)) {
      expect(data, path).toEqual(await raw(path));
      expect(currency, path).toBe('USD');
      expect(requestId, path).toMatch(/./);
    }
    expect((await client.machines(provider, region)).isUnchanged).toBe(true);
    expect((await client.machines(provider, 999_999)).data).toEqual([]);
  });

  it('every rejection of the reader is a problem with its members', async () => {
    await using api = await served();
    const good = await api.token(['clusters:read']);
    const client = new FleetbookClient({ url: api.url, token: good.token });
    await expect(client.cluster('no such/cluster?')).rejects.toMatchObject({ status: 404 });
    await expect(client.machine(1)).rejects.toMatchObject({
      status: 403,
      type: 'urn:fleetbook:problem:insufficient-scope',
      scope: 'machines:read',
    });
    const machines = new FleetbookClient({ url: api.url, token: (await api.token()).token });
    await expect(machines.machine(-1)).rejects.toMatchObject({ status: 400, parameter: 'id' });
    // A stored answer is not returned to a token that may not read it.
    await client.clusters();
    await revokeToken(scene.store.db, good.id);
    await scene.publisher.publishDirty();
    await until(() =>
      client.clusters().then(
        () => false,
        (error) => error.status === 401,
      ),
    );
  });
});

describe('the bundle', () => {
  it('imports nothing, and is at most 6 kB compressed', () => {
    expect(bundle.imports).toEqual([]);
    expect(bundle.module).not.toMatch(/\b(process|Buffer|require|globalThis\.node)\b/);
    expect(gzipSync(bundle.module).length).toBeLessThan(6_000);
  });

  it('needs only web globals, and no code from strings, as on edge runtimes', async () => {
    await using api = await served();
    await using fake = await FakeExtensions.start();
    const { fetch, Headers, Response, URL, AbortController, ReadableStream, TextDecoder } = globalThis;
    const { setTimeout, clearTimeout, performance } = globalThis;
    const globals = {
      ...{ fetch, Headers, Response, URL, AbortController, ReadableStream, TextDecoder },
      ...{ setTimeout, clearTimeout, performance },
    };
    const context = createContext(globals, { codeGeneration: { strings: false, wasm: false } });
    const { FleetbookClient: Client } = runInContext(`${bundle.script};fleetbook`, context) as {
      FleetbookClient: typeof FleetbookClient;
    };
    const client = new Client({ url: api.url, token: (await api.token()).token });
    expect((await client.cluster('cluster-test')).data.slug).toBe('cluster-test');
    expect((await client.cluster('cluster-test')).isUnchanged).toBe(true);
    await expect(client.cluster('none')).rejects.toMatchObject({ name: 'FleetbookProblem', status: 404 });
    const extended = new Client({ url: fake.url, token: fake.token });
    fake.happens({ type: 'cluster.deleted', slug: 'a' });
    for await (const { id } of extended.changes({ after: 'at-0' })) {
      expect(id).toBe('at-1');
      break;
    }
    const { body, bytes } = await extended.download('machines.parquet');
    expect((await new Response(body).arrayBuffer()).byteLength).toBe(bytes);
  });
});

describe('in a browser', needs(hasChromium, CHROMIUM), () => {
  it('a page of a permitted origin reads answers, headers and problems; another one nothing', async () => {
    await using ours = await FakeExtensions.start(sendPage);
    await using theirs = await FakeExtensions.start(sendPage);
    await using api = await served([ours.url]);
    const browser = await launchBrowser();
    await using _ = { [Symbol.asyncDispose]: () => browser.close() };
    const page = await browser.newPage();
    const inPage = async (origin: string, { url, token }: { url: string; token: string }, work: string) => {
      await page.goto(`${origin}/page.html`);
      return page.evaluate(
        `import('/client.js').then(async ({ FleetbookClient }) => {
          const client = new FleetbookClient(${JSON.stringify({ url, token, attempts: 1 })});
          ${work}
        })`,
      );
    };
    const reader = { url: api.url, token: (await api.token()).token };
    const read = `
      const first = await client.clusters();
      const again = await client.clusters();
      const problem = await client.cluster('none').catch((error) => error);
      return { slugs: first.data.map(({ slug }) => slug), currency: first.currency, requestId: first.requestId,
        isUnchanged: again.isUnchanged, status: problem.status, name: problem.name };`;
    expect(await inPage(ours.url, reader, read)).toEqual({
      slugs: expect.arrayContaining(['cluster-test']),
      currency: 'USD',
      requestId: expect.stringMatching(/./),
      isUnchanged: true,
      status: 404,
      name: 'FleetbookProblem',
    });
    const refused = `return client.clusters().catch((error) => error.name)`;
    expect(await inPage(theirs.url, reader, refused)).toBe('FleetbookUnreachable');
    ours.happens({ type: 'cluster.deleted', slug: 'a' }, { type: 'cluster.deleted', slug: 'b' });
    const follow = `
      const ids = [];
      for await (const { id } of client.changes({ after: 'at-0' })) if (ids.push(id) === 2) break;
      const { body, bytes } = await client.download('machines.parquet');
      return [ids, bytes === (await new Response(body).arrayBuffer()).byteLength];`;
    expect(await inPage(ours.url, ours, follow)).toEqual([['at-1', 'at-2'], true]);
  });
});
