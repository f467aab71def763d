import { describe, expect, it } from 'vitest';
import {
  type HistoryMark,
  type HistoryState,
  isSameDatabase,
  KnownHistory,
  markText,
  readMark,
} from '../../src/db/connection/history.ts';

const HERE = '7 00000001 5 6';
const state = (given: Partial<HistoryState> = {}) =>
  Promise.resolve({ lineage: 'one', began: HERE, identity: HERE, written: 100, ...given });
const noMark = () => Promise.resolve(undefined);
const sharedMark = (mark: Partial<HistoryMark>) => (lineage: string) =>
  Promise.resolve({ lineage, identity: HERE, written: 100, ...mark });

describe('a check of the history of a database', () => {
  it('finds no loss while the WAL grows, and remembers the farthest state', async () => {
    const history = new KnownHistory();
    for (const written of [100, 100, 250])
      expect(await history.check(() => state({ written }), noMark)).toMatchObject({ loss: undefined });
    expect(history.mark).toEqual({ lineage: 'one', identity: HERE, written: 250 });
  });

  it('finds a shorter WAL, and remembers it when the WAL has grown again', async () => {
    const history = new KnownHistory();
    await history.check(() => state({ written: 100 }), noMark);
    for (const written of [99, 500])
      expect(await history.check(() => state({ written }), noMark)).toMatchObject({ loss: 'earlier state' });
    const begun = await history.check(() => state({ lineage: 'two', written: 600 }), noMark);
    expect(begun.loss).toBeUndefined();
  });

  it('finds a WAL that is shorter than the shared mark', async () => {
    const history = new KnownHistory();
    const seen = await history.check(() => state({ written: 100 }), sharedMark({ written: 101 }));
    expect(seen.loss).toBe('earlier state');
  });

  it('reads the state again before it trusts a mark that may be newer', async () => {
    const lengths = [100, 130];
    const history = new KnownHistory();
    const seen = await history.check(
      () => state({ written: lengths.shift() ?? 0 }),
      sharedMark({ written: 120 }),
    );
    expect(seen).toMatchObject({ loss: undefined, written: 130 });
  });

  it('uses the mark from before it read the state: concurrent checks may end in any order', async () => {
    const history = new KnownHistory();
    await history.check(() => state(), noMark);
    const { promise: answer, resolve } = Promise.withResolvers<HistoryState>();
    const first = history.check(() => answer, noMark);
    await history.check(() => state({ written: 200 }), noMark);
    resolve(await state({ written: 150 }));
    expect((await first).loss).toBeUndefined();
    expect(history.mark?.written).toBe(200);
  });

  it.each([
    ['a restored dump or a copy', '7 00000001 5 9'],
    ['a promoted standby or a recovery to a point in time', '7 00000002 5 6'],
    ['another server', '8 00000001 5 6'],
  ])('finds %s by its identity', async (_, identity) => {
    const seen = await new KnownHistory().check(() => state({ identity }), noMark);
    expect(seen.loss).toBe('another database');
  });

  it('ignores marks of another lineage or another database', async () => {
    const read = () => state({ began: null, written: 10 });
    for (const mark of [{ lineage: 'zero' }, { identity: '7 00000009 5 6' }])
      expect(
        (await new KnownHistory().check(read, sharedMark({ written: 100, ...mark }))).loss,
      ).toBeUndefined();
  });

  it('finds a database that went back to an earlier lineage', async () => {
    const history = new KnownHistory();
    await history.check(() => state(), noMark);
    await history.check(() => state({ lineage: 'two' }), noMark);
    expect((await history.check(() => state({ written: 900 }), noMark)).loss).toBe('earlier state');
  });

  it('trusts a standby, except for a lineage that has ended', async () => {
    const standby = { identity: null, written: null };
    const history = new KnownHistory();
    await history.check(() => state(), noMark);
    const same = await history.check(() => state(standby), noMark);
    expect(same).toMatchObject({ loss: undefined, isLate: false });
    await history.check(() => state({ ...standby, lineage: 'two' }), noMark);
    const late = await history.check(() => state(standby), noMark);
    expect(late).toMatchObject({ loss: undefined, isLate: true });
  });

  it('uses the identity alone if a server does not report its WAL', async () => {
    const history = new KnownHistory();
    const seen = await history.check(() => state({ written: null }), sharedMark({ written: 100 }));
    expect(seen.loss).toBeUndefined();
    expect(isSameDatabase('- - 5 6', HERE)).toBe(true);
    expect(isSameDatabase('- - 5 9', HERE)).toBe(false);
  });
});

describe('a mark in the cache', () => {
  it('reads what was written', () => {
    const mark = { lineage: 'one', identity: HERE, written: 123_456_789_012 };
    expect(readMark('one', markText(mark))).toEqual(mark);
  });

  it.each([null, undefined, '', 'x', '12', '-1 7 1 5 6', '1e9 7', '9999999999999999 7 1 5 6'])(
    '%j is not a mark',
    (text) => {
      expect(readMark('one', text)).toBeUndefined();
    },
  );
});
