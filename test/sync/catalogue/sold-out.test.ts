import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ExclusionReason } from '../../../src/domain/machine.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { offer, openScene, region, type Scene } from '../scene.ts';

const LOCATIONS = ['fsn1', 'nbg1', 'hel1'];
const CX = ['cx23', 'cx33', 'cx43', 'cax11', 'cax21', 'cax31'];
const CPX = ['cpx11', 'cpx21', 'cpx31', 'ccx13', 'ccx23'];

interface Day {
  /** Prices of the CX and CAX types. */
  readonly excluded?: ExclusionReason;
  /** Prices of the other types, an hour. */
  readonly amount?: string;
  /** Prices of the CX and CAX types, an hour. */
  readonly cheap?: string;
}

/** Hetzner's catalogue around 2026-09-03. */
const day = ({ excluded, amount = '0.06', cheap = '0.006' }: Day = {}): CatalogueItem[] => [
  ...LOCATIONS.map((code) => region(code)),
  ...LOCATIONS.flatMap((code) => [
    ...CX.map((name) => offer(code, name, { amount: cheap, ...(excluded && { excluded }) })),
    ...CPX.map((name) => offer(code, name, { amount })),
  ]),
];

describe('sold-out machines', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(() => scene.reset());

  const machines = async (name: string) =>
    scene.sql`
      select m.id, m.excluded_reason as reason, m.source_amount::text as amount, m.retired_at, m.missed_runs as missed
      from machines m where m.name = ${name} order by m.id`;
  const changes = async () =>
    (
      await scene.sql<{ change: string; count: number }[]>`
        select change, count(*)::int as count from machine_changes
        where run_id = (select max(id) from sync_runs) group by 1 order by 1`
    ).map(({ change, count }) => `${count} ${change}`);

  it.each<ExclusionReason>(['sold_out', 'unavailable'])(
    'never hold a batch: the new prices of the others on 2026-09-03 are stored at once (%s)',
    async (excluded) => {
      await scene.catalogue(day());
      const before = await machines('cx33');
      expect(await scene.catalogue(day({ excluded, amount: '0.07' }))).toMatchObject({
        outcome: 'changed',
        broken: [],
        counts: { seen: 33, added: 0, changed: 33, retired: 0, withdrawn: 0 },
        withdrawn: [{ code: 'sold_out', count: 18 }],
      });
      expect(await machines('cpx11')).toMatchObject(Array(3).fill({ reason: null, amount: '0.07' }));
      expect(await machines('cx33')).toMatchObject(before.map((row) => ({ ...row, reason: 'sold_out' })));
      expect(await changes()).toEqual(['15 repriced', '18 sold_out']);

      expect(await scene.catalogue(day({ amount: '0.07' }))).toMatchObject({
        outcome: 'changed',
        broken: [],
        counts: { added: 0, changed: 18 },
      });
      expect(await machines('cx33')).toEqual(before);
      expect(await changes()).toEqual(['18 restocked']);
    },
  );

  it('do not count as price changes, even if all of them have another price', async () => {
    await scene.catalogue(day());
    const limits = { repricedShare: 0.1 };
    const sold = day({ excluded: 'sold_out', cheap: '0.007' });
    expect(await scene.catalogue(sold, { limits })).toMatchObject({ outcome: 'changed', broken: [] });
    expect(await machines('cx33')).toMatchObject([{ amount: '0.007' }, {}, {}]);
    expect(await scene.catalogue(day({ cheap: '0.007' }), { limits })).toMatchObject({ broken: [] });
    expect(await machines('cx33')).toMatchObject([{ reason: null, amount: '0.007' }, {}, {}]);
  });

  it('keep their last price if the new one exceeds the factor, which applies again once they can be ordered', async () => {
    await scene.catalogue(day());
    const sold = day({ excluded: 'sold_out', cheap: '0.6' });
    expect(await scene.catalogue(sold)).toMatchObject({ outcome: 'changed', broken: [] });
    expect(await machines('cx33')).toMatchObject([{ reason: 'sold_out', amount: '0.006' }, {}, {}]);
    expect(await scene.catalogue(sold)).toMatchObject({ outcome: 'unchanged', broken: [] });
    expect(await scene.catalogue(day({ cheap: '0.6' }))).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'repriced' }, { guard: 'price_ratio' }],
    });
  });

  it('count as removed if they are no longer listed', async () => {
    await scene.catalogue(day());
    await scene.catalogue(day({ excluded: 'sold_out' }));
    const without = day().filter((item) => item.kind !== 'offer' || CPX.includes(item.offer.name));
    expect(await scene.catalogue(without)).toMatchObject({ outcome: 'held', broken: [{ guard: 'removed' }] });
  });

  it('exclude machines that were never available where their provider does not sell them', async () => {
    await scene.catalogue([...day(), offer('fsn1', 'planned', { excluded: 'unavailable' })]);
    expect(await machines('planned')).toMatchObject([{ reason: 'unavailable' }]);
  });

  it('exclude machines that have another reason for exclusion', async () => {
    const odd = [
      offer('fsn1', 'large', { ram: 1000, excluded: 'sold_out' }),
      offer('fsn1', 'odd', { ram: 0.5, excluded: 'unavailable' }),
      offer('fsn1', 'free', { amount: '0', excluded: 'sold_out' }),
      offer('fsn1', 'unrated', { price: { currency: 'JPY' }, excluded: 'sold_out' }),
    ];
    await scene.catalogue([...day(), ...odd]);
    const reasons = await scene.sql`
      select name, excluded_reason as reason from machines where name in ('large', 'odd', 'free', 'unrated')`;
    expect(Object.fromEntries(reasons.map(({ name, reason }) => [name, reason]))).toEqual({
      large: 'over_ram_limit',
      odd: 'fractional_memory',
      free: 'zero_price',
      unrated: 'no_exchange_rate',
    });
  });

  it('are still sold out after their approval was carried out', async () => {
    await scene.catalogue(day());
    const lost = day({ excluded: 'unavailable' }).filter(
      (item) => item.kind !== 'offer' || CX.includes(item.offer.name),
    );
    expect(await scene.catalogue(lost)).toMatchObject({
      broken: [{ guard: 'removed', detail: expect.stringMatching(/^15 of 33/) }],
    });
    await scene.catalogue(lost, { approved: true });
    expect(await machines('cx33')).toMatchObject([{ reason: 'sold_out' }, {}, {}]);
  });
});
