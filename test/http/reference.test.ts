import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { programBytes, programName } from '../../src/http/reference/files.ts';
import { referencePage } from '../../src/http/reference/page.ts';
import { until } from '../support/until.ts';
import { listen, testApi } from './harness.ts';

/** The number of open files of this process; undefined if the system does not show it. */
const openFiles = () => (existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : undefined);

interface OpenApi {
  readonly paths: Readonly<
    Record<
      string,
      { get: { summary: string; parameters?: { name: string; in: string; required: boolean }[] } }
    >
  >;
}

describe('the reference page', () => {
  it('is public, and permits only resources of its server', async () => {
    await using api = await testApi({ docs: true });
    const page = await api.app.inject({ url: '/docs', headers: { accept: 'text/html' } });
    expect([page.statusCode, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    const policy = String(page.headers['content-security-policy']);
    const [, inline = ''] = /<script>([^<]+)<\/script>/.exec(page.body) ?? [];
    const hash = createHash('sha256').update(inline).digest('base64');
    expect(policy).toContain(`script-src 'self' 'sha256-${hash}';`);
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    expect(page.body).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);

    const again = { url: '/docs', headers: { 'if-none-match': String(page.headers.etag) } };
    expect((await api.app.inject(again)).statusCode).toBe(304);
    expect((await api.app.inject({ url: '/docs', method: 'POST' })).statusCode).toBe(405);
    const slash = await api.app.inject('/docs/');
    expect([slash.statusCode, slash.headers.location]).toEqual([308, '/docs']);
    const root = await api.app.inject('/');
    expect([root.statusCode, root.headers.location]).toEqual([302, '/docs']);
  });

  it('has a program that may be cached forever, the same in each coding', async () => {
    await using api = await testApi({ docs: true });
    const { body } = await api.app.inject('/docs');
    const [, url = ''] = /<script src="(docs\/scalar-[0-9a-f]{16}\.js)"/.exec(body) ?? [];
    const get = (coding: string, method: 'GET' | 'HEAD' = 'GET') =>
      api.app.inject({ url: `/${url}`, method, headers: { 'accept-encoding': coding } });
    const [plain, gzip, br] = [await get('identity'), await get('gzip'), await get('br')];
    expect([plain, gzip, br].map(({ headers }) => headers['content-encoding'])).toEqual([
      undefined,
      'gzip',
      'br',
    ]);
    expect(url).toContain(createHash('sha256').update(plain.rawPayload).digest('hex').slice(0, 16));
    expect(gunzipSync(gzip.rawPayload).equals(plain.rawPayload)).toBe(true);
    expect(brotliDecompressSync(br.rawPayload).equals(plain.rawPayload)).toBe(true);
    expect(br.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-length': String(br.rawPayload.length),
      'content-type': 'text/javascript; charset=utf-8',
    });
    const head = await get('br', 'HEAD');
    expect([head.headers['content-length'], head.body]).toEqual([br.headers['content-length'], '']);
  });

  it('has one program in memory for all clients, however slowly they read', async () => {
    const name = programName() ?? expect.unreachable();
    for (const coding of ['identity', 'gzip', 'br'] as const) {
      const [first, second] = await Promise.all([programBytes(name, coding), programBytes(name, coding)]);
      expect(second, coding).toBe(first);
    }
    await using api = await testApi({ docs: true });
    const port = await listen(api.app);
    const answers: ServerResponse[] = [];
    api.app.server.on('request', (_, answer: ServerResponse) => answers.push(answer));
    const files = openFiles();
    const clients = Array.from({ length: 20 }, () => connect({ port, host: '127.0.0.1' }).pause());
    for (const client of clients) client.write(`GET /docs/${name} HTTP/1.1\r\nHost: a\r\n\r\n`);
    try {
      await until(() => answers.length === clients.length && answers.every((each) => each.headersSent));
      // Both ends of each connection are in this process.
      if (files !== undefined) expect(openFiles()).toBeLessThanOrEqual(files + 2 * clients.length);
    } finally {
      for (const client of clients) client.destroy();
    }
  });

  it('explains how to build it in a checkout without it', () => {
    expect(programName('/nowhere/at/all')).toBeUndefined();
    expect(referencePage(undefined)).toContain('node src/http/reference/build.mjs --strict');
    expect(referencePage(undefined)).not.toContain('<script');
  });

  it('is an unknown path if it is switched off', async () => {
    await using api = await testApi({ docs: false });
    const authorization = `Bearer ${api.token}`;
    for (const url of ['/docs', '/llms.txt']) {
      expect((await api.app.inject(url)).statusCode, url).toBe(401);
      expect((await api.app.inject({ url, headers: { authorization } })).statusCode, url).toBe(404);
    }
  });
});

describe('/llms.txt', () => {
  it('describes each operation with its parameters, its errors and further pages', async () => {
    await using api = await testApi({ docs: true, basePath: '/catalogue' });
    const text = await api.app.inject('/llms.txt');
    expect(text.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(text.body).toMatch(/^# Fleetbook\n\n> /);
    const { paths } = (await api.app.inject('/openapi.json')).json() as OpenApi;
    const operations = Object.entries(paths).filter(([path]) => path.startsWith('/v1/'));
    expect(operations.length).toBeGreaterThan(5);
    for (const [path, { get }] of operations) {
      const [, section = ''] = text.body.split(`### GET /catalogue${path}\n`);
      const [own = ''] = section.split('\n##');
      expect(own, path).toContain(`${get.summary}. `);
      for (const { name, required, in: where } of get.parameters ?? []) {
        // Fields of the header are described once, for all operations.
        if (where === 'header') expect(text.body).toContain(`\`${name}: `);
        else
          expect(own).toMatch(
            new RegExp(`- \`${name}\` \\(\\w+, ${required ? 'required' : 'optional'}\\): `),
          );
      }
    }
    expect(text.body).toContain('- 403, token without the scope: The token lacks the scope clusters:read.');
    expect(text.body).toContain('(/catalogue/openapi.json)');
  });
});
