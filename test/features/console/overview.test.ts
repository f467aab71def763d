import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inPackage } from '../../../src/config/package.ts';
import { MARK, type Overview } from '../../../src/features/console/routes/answers.ts';
import { until } from '../../support/until.ts';
import { type ConsoleScene, HEADERS, openConsoleScene } from './scene.ts';

let scene: ConsoleScene;
beforeAll(async () => {
  scene = await openConsoleScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const overview = async () => (await scene.get('/api/overview')) as Overview;

describe('the console’s overview', () => {
  it('shows a configured source before its first run, not as good', async () => {
    const { problems, sources, queues } = await overview();
    const hetzner = sources.find(({ id }) => id === 'hetzner');
    expect(hetzner).toMatchObject({ state: 'never-read', configured: true, schedule: '0 * * * *', runs: [] });
    expect(sources.filter(({ state }) => state === 'ok')).toEqual([]);
    expect(problems.map(({ kind }) => kind)).toContain('never-read');
    expect(queues).toEqual(
      ['sync', 'sweep', 'notifications'].map((name) => ({
        name,
        waiting: 0,
        active: 0,
        delayed: 0,
        failed: 0,
      })),
    );
  });

  it('shows the result of a run, and its strip', async () => {
    expect((await scene.sync(1)).outcome).toBe('changed');
    const hetzner = await until(async () =>
      (await overview()).sources.find(({ id, state }) => id === 'hetzner' && state === 'ok'),
    );
    expect(hetzner).toMatchObject({
      known: 12,
      published: 10,
      held: 0,
      objectiveSeconds: 10_800,
      runs: [{ outcome: 'changed' }],
    });
    expect(hetzner.ageSeconds).toBeLessThan(60);
    expect(hetzner.changedAt).toBe(hetzner.lastRun?.startedAt);
    expect(Date.parse(hetzner.nextSlot ?? '')).toBeGreaterThan(Date.now());
  });

  it('lists a held batch first, then a failed run', async () => {
    expect((await scene.sync(100)).outcome).toBe('held');
    await scene.fail();
    const { problems, sources } = await until(async () => {
      const found = await overview();
      return found.problems.some(({ kind }) => kind === 'failing') && found;
    });
    expect(problems.filter(({ source }) => source === 'hetzner')).toMatchObject([
      { kind: 'held', batch: 1, text: expect.stringContaining('known rows have another price') },
      { kind: 'failing', text: expect.stringContaining('127.0.0.1') },
    ]);
    await scene.worker.store.sql`
      update sync_runs set finished_at = finished_at - interval '2 hours' where outcome = 'failed'`;
    await scene.fail();
    const again = await until(async () => {
      const failing = (await overview()).problems.find(({ kind }) => kind === 'failing');
      return failing?.since !== problems.find(({ kind }) => kind === 'failing')?.since && failing;
    });
    const failingMs = Date.now() - Date.parse(again.since ?? '');
    expect(failingMs, 'since the first failure in a row').toBeGreaterThan(7_100_000);
    const hetzner = sources.find(({ id }) => id === 'hetzner');
    expect(hetzner?.state).toBe('held');
    expect(hetzner?.runs.map(({ outcome }) => outcome)).toEqual(['changed', 'held', 'failed']);
  });

  it('is closed without the token', async () => {
    for (const url of ['/', '/held/1', '/api/overview', '/api/events', '/assets/x.js']) {
      expect([url, (await scene.app.inject({ url })).statusCode]).toEqual([url, 401]);
    }
  });

  it('answers an unknown route with JSON', async () => {
    const answer = await scene.app.inject({ url: '/api/nothing', headers: HEADERS });
    expect([answer.statusCode, answer.json()]).toEqual([404, { error: 'there is no /api/nothing' }]);
  });
});

describe('the console’s page', () => {
  it.each(['/', '/held', '/held/3', '/sources/hetzner', '/machines?q=cx', '/machines/1'])(
    'is served at %s, and may use only its own site',
    async (url) => {
      const { statusCode, headers, body } = await scene.app.inject({ url, headers: HEADERS });
      expect([statusCode, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
      const policy = String(headers['content-security-policy']);
      expect(policy).toContain("default-src 'self'; script-src 'self'; style-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('unsafe');
      expect(body).not.toMatch(/<script>|<style|style="|https?:\/\//);
    },
  );

  it('makes the browser request the first data at once', async () => {
    const linksOf = async (url: string) =>
      String((await scene.app.inject({ url, headers: HEADERS })).headers.link);
    expect(await linksOf('/?state=trouble')).toContain('</api/overview>; rel=preload; as=fetch');
    expect(await linksOf('/machines')).not.toContain('overview');
  });

  it('has compressed files that browsers may cache, since their names have a hash', async () => {
    const page = await scene.app.inject({ url: '/', headers: HEADERS });
    const [, script = ''] = /src="(\/assets\/[^"]+\.js)"/.exec(page.body) ?? [];
    const answer = await scene.app.inject({
      url: script,
      headers: { ...HEADERS, 'accept-encoding': 'br, gzip' },
    });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'content-encoding': 'gzip',
      'cache-control': 'private, max-age=31536000, immutable',
    });
    expect(answer.rawPayload.length).toBeLessThan(150_000);
    // The build has compressed it.
    const built = (ending: string) =>
      readFileSync(inPackage('dist', 'console', `${script.slice(1)}${ending}`));
    expect(answer.rawPayload.equals(built('.gz'))).toBe(true);
    const plain = await scene.app.inject({ url: script, headers: { ...HEADERS, 'accept-encoding': 'br' } });
    expect(plain.rawPayload.equals(built(''))).toBe(true);
    // A development build has the paths of its sources.
    expect(gunzipSync(answer.rawPayload).toString()).not.toContain(process.cwd());
    const missing = await scene.app.inject({ url: '/assets/..%2findex.html', headers: HEADERS });
    expect(missing.statusCode).toBe(404);
  });
});

describe('the console’s events', () => {
  it('have a HEAD answer that ends, and holds no page', async () => {
    const { statusCode, headers, body } = await scene.app.inject({
      method: 'HEAD',
      url: '/api/events',
      headers: HEADERS,
    });
    expect([statusCode, headers['content-type'], body]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
      '',
    ]);
  });

  it('notify an open page of a run, and end with the server', async () => {
    const url = await scene.app.listen({ host: '127.0.0.1', port: 0 });
    const response = await fetch(`${url}/api/events`, { headers: HEADERS });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    let text = '';
    const marks = () => [...text.matchAll(/^event: change\ndata: (.*)$/gm)].map(([, data]) => data);
    const reading = (async () => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
    })();
    reading.catch(() => {});
    await until(() => marks().length > 0);
    // A page that requested its data before need not request it again.
    const answer = await fetch(`${url}/api/overview`, { headers: HEADERS });
    expect([answer.headers.get(MARK)]).toEqual(marks());
    await answer.text();
    const before = marks().length;
    await scene.sync(1);
    await until(() => marks().length > before);
    expect(new Set(marks()).size).toBe(marks().length);
    await scene.app.close();
    await reading.catch(() => {});
    const free = createServer();
    await new Promise<void>((resolve) => free.listen(Number(new URL(url).port), '127.0.0.1', resolve));
    free.close();
  });
});
