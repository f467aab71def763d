import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fleetbook } from '../support/fleetbook.ts';
import { until } from '../support/until.ts';
import { startUp, temporaryHome, type Up } from '../support/up.ts';
import { missingPart, pageExamples } from './page-examples.ts';

interface Source {
  readonly id: string;
  readonly verifiedAt: string | null;
  readonly pending: unknown;
  readonly lastRun: { readonly outcome: string; readonly error: string | null } | null;
}
interface Machine {
  readonly id: number;
  readonly name: string;
}
interface Alternatives {
  readonly same_region: readonly {
    readonly machine: Machine;
    readonly saving_per_month: number;
    readonly compared: { readonly same_cpu_kind: boolean };
  }[];
}
interface Price {
  readonly price: number;
  readonly from: string;
}

const DAY_MS = 86_400_000;

describe('fleetbook demo', () => {
  const closing = new AsyncDisposableStack();
  let up: Up;
  let command: (...args: string[]) => Promise<unknown>;

  beforeAll(async () => {
    const home = closing.use(await temporaryHome());
    // Nothing of these may be used: neither the server nor the provider.
    const others = { DATABASE_URL: 'postgres://127.0.0.1:1/none', LINODE_URL: 'http://127.0.0.1:1' };
    up = closing.use(
      await startUp(home.path, { FLEETBOOK_HOME: home.path, ...others }, ['demo', '--no-open']),
    );
    // The demo prints this line after those that `startUp` waits for.
    await until(() => up.output().includes('Commands find the demo'));
    command = async (...args) => {
      const { stdout, stderr } = await fleetbook([...args, '--json'], { FLEETBOOK_HOME: home.path });
      expect(stderr).toBe('');
      return JSON.parse(stdout);
    };
  }, 120_000);
  afterAll(() => closing.disposeAsync());

  it('has prices that changed during a month', async () => {
    const providers = (await up.json('/v1/providers')) as {
      name: string;
      id: number;
      regions: { id: number; code: string }[];
    }[];
    const hetzner = providers.find(({ name }) => name === 'Hetzner');
    const ash = hetzner?.regions.find(({ code }) => code === 'ash');
    const machines = (await up.json(`/v1/machines?provider=${hetzner?.id}&region=${ash?.id}`)) as Machine[];
    const cpx11 = machines.find(({ name }) => name === 'cpx11');
    const prices = (await up.json(`/v1/machines/${cpx11?.id}/prices`)) as Price[];
    expect(prices.map(({ price }) => Number((price * 60).toFixed(6)))).toEqual([0.00846, 0.008545, 0.008206]);
    const days = prices.map(({ from }) => Math.round((Date.now() - Date.parse(from)) / DAY_MS));
    expect(days).toEqual([0, 21, 30]);
  });

  it('has three organizations with clusters, and each reads its own', async () => {
    const organizations = (await command('org', 'list')) as { slug: string }[];
    expect(organizations.map(({ slug }) => slug).sort()).toEqual(['acme', 'globex', 'sample']);
    const { rows } = (await command('clusters', '--all')) as { rows: { organization: { slug: string } }[] };
    expect(new Set(rows.map(({ organization }) => organization.slug))).toEqual(
      new Set(['acme', 'globex', 'sample']),
    );
    expect(await up.json('/v1/clusters')).toHaveLength(5);
  });

  it('answers the examples of the pages as the sample does', async () => {
    for (const { path, answer } of pageExamples())
      expect(missingPart(answer, await (await up.get(path)).text()), path).toBeUndefined();
  });

  it('has a cluster that another machine of its region would make cheaper', async () => {
    const { same_region: found } = (await up.json(
      '/v1/clusters/reports-chicago/alternatives',
    )) as Alternatives;
    const best = found.find(({ compared }) => compared.same_cpu_kind);
    expect(best?.machine.name).toBe('g6-dedicated-4');
    expect(best?.saving_per_month).toBeCloseTo(56, 6);
  });

  it('has terms, own prices, sold-out machines and files, each with a month of history', async () => {
    const search = async (query: string) =>
      (await up.json(`/v1/machines/search?${query}`)) as { machines: unknown[] };
    expect((await search('term=reserved_1y')).machines).toHaveLength(5);
    const sizes = await Promise.all(['min_cpu=8&limit=500', 'min_cpu=8&limit=500&available=all'].map(search));
    expect(sizes[1]?.machines.length).toBeGreaterThan(sizes[0]?.machines.length ?? 0);
    const { entries } = (await command('price', 'list', '--org', 'acme')) as { entries: unknown[] };
    expect(entries).toHaveLength(2);
    expect((await up.get('/v1/exports/machines.csv')).status).toBe(200);
    expect(await command('changes', '--since', '29d')).toMatchObject({ isComplete: true });
  });

  it('has only the alerts of the failing source, of the held batch, and of ended versions', async () => {
    const alerts = async () => (await command('alert', 'list')) as { kind: string; subject: string }[];
    await until(async () => (await alerts()).length > 3);
    expect((await alerts()).map(({ kind, subject }) => `${kind} ${subject}`).sort()).toEqual([
      'batch_held linode',
      'source_stale own-hardware',
      'version_ending clickhouse 25.8',
      'version_ending postgresql 14',
    ]);
  });

  it('has a held batch of one source and failed runs of another', async () => {
    const held = (await command('hold', 'list')) as { sourceId: string; status: string }[];
    expect(held).toMatchObject([{ sourceId: 'linode', status: 'pending' }]);
    const sources = (await command('status')) as Source[];
    const own = sources.find(({ id }) => id === 'own-hardware');
    expect(own?.lastRun?.error).toMatch(/answers 401/);
    expect(Math.round((Date.now() - Date.parse(own?.verifiedAt ?? '')) / DAY_MS)).toBe(7);
  });
});
