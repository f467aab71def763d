import { describe, expect, it } from 'vitest';
import {
  type HistoryLook,
  type HistoryMark,
  isSameDatabase,
  KnownHistory,
  markText,
  readMark,
} from '../../src/db/connection/history.ts';

const HERE = '7 00000001 5 6';
const looks = (look: Partial<HistoryLook> = {}) =>
  Promise.resolve({ lineage: 'one', began: HERE, identity: HERE, written: 100, ...look });
const nobody = () => Promise.resolve(undefined);
const told = (mark: Partial<HistoryMark>) => (lineage: string) =>
  Promise.resolve({ lineage, identity: HERE, written: 100, ...mark });

describe('a look at the history of a database', () => {
  it('finds nothing while the log grows, and remembers the farthest', async () => {
    const history = new KnownHistory();
    for (const written of [100, 100, 250])
      expect(await history.look(() => looks({ written }), nobody)).toMatchObject({ loss: undefined });
    expect(history.mark).toEqual({ lineage: 'one', identity: HERE, written: 250 });
  });

  it('finds a log that has become shorter, and remembers it when the log has grown again', async () => {
    const history = new KnownHistory();
    await history.look(() => looks({ written: 100 }), nobody);
    for (const written of [99, 500])
      expect(await history.look(() => looks({ written }), nobody)).toMatchObject({ loss: 'earlier state' });
    const begun = await history.look(() => looks({ lineage: 'two', written: 600 }), nobody);
    expect(begun.loss).toBeUndefined();
  });

  it('finds one that is shorter than what somebody else has seen', async () => {
    const history = new KnownHistory();
    const seen = await history.look(() => looks({ written: 100 }), told({ written: 101 }));
    expect(seen.loss).toBe('earlier state');
  });

  it('asks again before it believes a mark that was set after its look', async () => {
    const lengths = [100, 130];
    const history = new KnownHistory();
    const seen = await history.look(() => looks({ written: lengths.shift() ?? 0 }), told({ written: 120 }));
    expect(seen).toMatchObject({ loss: undefined, written: 130 });
  });

  it('goes by what was known before PostgreSQL was asked: two looks at once may end in any order', async () => {
    const history = new KnownHistory();
    await history.look(() => looks(), nobody);
    const { promise: answer, resolve } = Promise.withResolvers<HistoryLook>();
    const first = history.look(() => answer, nobody);
    await history.look(() => looks({ written: 200 }), nobody);
    resolve(await looks({ written: 150 }));
    expect((await first).loss).toBeUndefined();
    expect(history.mark?.written).toBe(200);
  });

  it.each([
    ['a restored dump or a copy', '7 00000001 5 9'],
    ['a promoted standby or a recovery to a point in time', '7 00000002 5 6'],
    ['another server', '8 00000001 5 6'],
  ])('finds %s by its identity', async (_, identity) => {
    const seen = await new KnownHistory().look(() => looks({ identity }), nobody);
    expect(seen.loss).toBe('another database');
  });

  it('compares with no mark of another lineage or another database', async () => {
    const look = () => looks({ began: null, written: 10 });
    for (const mark of [{ lineage: 'zero' }, { identity: '7 00000009 5 6' }])
      expect((await new KnownHistory().look(look, told({ written: 100, ...mark }))).loss).toBeUndefined();
  });

  it('finds a lineage that another one has followed: the database has gone back to it', async () => {
    const history = new KnownHistory();
    await history.look(() => looks(), nobody);
    await history.look(() => looks({ lineage: 'two' }), nobody);
    expect((await history.look(() => looks({ written: 900 }), nobody)).loss).toBe('earlier state');
  });

  it('takes a standby at its word, but for a lineage that has ended', async () => {
    const standby = { identity: null, written: null };
    const history = new KnownHistory();
    await history.look(() => looks(), nobody);
    const same = await history.look(() => looks(standby), nobody);
    expect(same).toMatchObject({ loss: undefined, isLate: false });
    await history.look(() => looks({ ...standby, lineage: 'two' }), nobody);
    const late = await history.look(() => looks(standby), nobody);
    expect(late).toMatchObject({ loss: undefined, isLate: true });
  });

  it('goes by identity and versions alone where a server does not tell of its log', async () => {
    const history = new KnownHistory();
    const seen = await history.look(() => looks({ written: null }), told({ written: 100 }));
    expect(seen.loss).toBeUndefined();
    expect(isSameDatabase('- - 5 6', HERE)).toBe(true);
    expect(isSameDatabase('- - 5 9', HERE)).toBe(false);
  });
});

describe('a mark in the cache', () => {
  it('is read as it was written', () => {
    const mark = { lineage: 'one', identity: HERE, written: 123_456_789_012 };
    expect(readMark('one', markText(mark))).toEqual(mark);
  });

  it.each([null, undefined, '', 'x', '12', '-1 7 1 5 6', '1e9 7', '9999999999999999 7 1 5 6'])(
    '%j is none',
    (text) => {
      expect(readMark('one', text)).toBeUndefined();
    },
  );
});
