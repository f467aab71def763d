/** Runs each adapter on invalid payloads: it rejects them by name, or yields items that the schema accepts. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SourceError } from '../../src/sources/source.ts';
import { type Budget, budget, fuzz } from './support/budget.ts';
import { wrongItem } from './support/items.ts';
import { type Mutation, mutationsWith, shownMutation } from './support/mutate.ts';
import { type FuzzSource, fuzzSources, type Item, networkSource } from './support/sources.ts';

/** With those of Kubernetes more than 5,000 in CI; the nightly workflow fuzzes for an hour. */
const ROUNDS = 30;
const NETWORK_ROUNDS = 20;
const BATCH = 10;
/** A read of a few kilobytes that exceeds this is an endless loop (ms, items). */
const TOO_LONG_MS = 10_000;
const TOO_MANY = 50_000;

/** A source may have plans of databases alone. */
const ROWS: ReadonlySet<string> = new Set(['offer', 'cluster', 'database-plan']);

const sources = await fuzzSources();

/** The result of a read. @throws Error for an error that no payload may cause */
async function outcomeOf(source: FuzzSource, mutation: Mutation): Promise<string> {
  const started = performance.now();
  let items = 0;
  let rows = 0;
  try {
    for await (const item of source.read(mutation)) {
      items += 1;
      if (items > TOO_MANY) throw new Error('it yields for ever');
      const wrong = wrongItem(item as Item);
      if (wrong !== undefined) throw new Error(wrong);
      if (ROWS.has(item.kind)) rows += 1;
    }
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    if (error.message === '' || error.message.length > 20_000)
      throw new Error(`a refusal that says: ${error.message.slice(0, 200)}`);
    return error.kind;
  } finally {
    if (performance.now() - started > TOO_LONG_MS) expect.unreachable('it takes for ever');
  }
  return rows === 0 ? 'nothing' : 'rows';
}

/** @returns the number of reads by result */
async function fuzzed(source: FuzzSource, rounds: Budget): Promise<Record<string, number>> {
  expect(
    (await Array.fromAsync(source.read())).map(wrongItem).filter((wrong) => wrong !== undefined),
  ).toEqual([]);
  const seen: Record<string, number> = {};
  await fuzz(
    fc.asyncProperty(fc.array(mutationsWith(3), { minLength: BATCH, maxLength: BATCH }), async (batch) => {
      for (const mutation of batch) {
        const outcome = await outcomeOf(source, mutation).catch((cause: unknown) => {
          const what = cause instanceof Error ? cause.stack : String(cause);
          throw new Error(`${what}\nfor ${shownMutation(mutation)}`, { cause });
        });
        seen[outcome] = (seen[outcome] ?? 0) + 1;
        expect(Reflect.get({}, 'polluted')).toBeUndefined();
      }
    }),
    rounds,
  );
  process.stdout.write(`payloads of ${source.id}: ${JSON.stringify(seen)}\n`);
  return seen;
}

/** A fuzz whose payloads are always or never rejected would find nothing. */
const BOTH = { rows: expect.any(Number), invalid: expect.any(Number) };
const WHAT = 'refuses what it cannot use by name, and yields nothing that is no row';

describe.for(sources)('$id', (source) => {
  const rounds = budget(`payloads of ${source.id}`, ROUNDS, 0.7 / sources.length);
  it(WHAT, { timeout: rounds.timeout }, async () => {
    expect(await fuzzed(source, rounds)).toMatchObject(BOTH);
  });
});

describe('clusters-kubernetes', () => {
  const rounds = budget('payloads of clusters-kubernetes', NETWORK_ROUNDS, 0.1);
  it(WHAT, { timeout: rounds.timeout }, async () => {
    await using source = await networkSource('kubernetes');
    expect(await fuzzed(source, rounds)).toMatchObject(BOTH);
  });
});
