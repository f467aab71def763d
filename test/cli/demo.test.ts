import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fleetbook } from '../support/fleetbook.ts';
import { until } from '../support/until.ts';
import { startUp, temporaryHome, type Up } from '../support/up.ts';

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
    const [, folder = ''] = await until(() => /FLEETBOOK_HOME=(\S+)\n/.exec(up.output()));
    command = async (...args) => {
      const { stdout, stderr } = await fleetbook([...args, '--json'], { FLEETBOOK_HOME: folder });
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
    expect(prices.map(({ price }) => Number((price * 60).toFixed(6)))).toEqual([0.008545, 0.008798, 0.00846]);
    const days = prices.map(({ from }) => Math.round((Date.now() - Date.parse(from)) / DAY_MS));
    expect(days).toEqual([0, 21, 30]);
  });

  it('has three organizations with clusters, and each reads its own', async () => {
    const organizations = (await command('org', 'list')) as { slug: string }[];
    expect(organizations.map(({ slug }) => slug).sort()).toEqual(['acme', 'default', 'globex']);
    const { rows } = (await command('clusters', '--all')) as { rows: { organization: { slug: string } }[] };
    expect(new Set(rows.map(({ organization }) => organization.slug))).toEqual(
      new Set(['acme', 'default', 'globex']),
    );
    expect(await up.json('/v1/clusters')).toHaveLength(1);
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
