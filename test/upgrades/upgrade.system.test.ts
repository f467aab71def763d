/** Each kept release: its database is migrated to today, and this release gives its answers from its rows and its cache. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reprice } from '../snapshot/rows.ts';
import { until } from '../support/until.ts';
import { keptReleases } from './support/fixture.ts';
import { answerTo, differences, type RecordedAnswer } from './support/recorded-answers.ts';
import { type Upgraded, upgradedFrom } from './support/upgraded.ts';

const RELEASES = await keptReleases();

describe.each(RELEASES)('the answers of %s are the same', (release) => {
  let upgraded: Upgraded;
  beforeAll(async () => {
    upgraded = await upgradedFrom(release);
  });
  afterAll(() => upgraded?.[Symbol.asyncDispose]());

  it('from its cache without a worker, and a later price of the database counts', async () => {
    await using installation = await upgraded.open();
    const url = await installation.reader();
    const { answers, tokens } = upgraded.fixture;
    expect(await differences(url, answers, tokens)).toEqual([]);
    const { id, path } = firstMachine(answers);
    await reprice(installation.sql, id, '0.234567');
    await until(async () => {
      const { body } = await answerTo(url, { token: 'all', path }, tokens);
      return (JSON.parse(body) as { price: number }).price === 0.234567;
    });
  });

  it('from an empty cache, and after a worker has published into its cache the same bytes', async () => {
    await using installation = await upgraded.open();
    await installation.worker();
    await installation.published();
    await using rebuilt = await upgraded.open({ cache: 'empty' });
    const [url, fresh] = [await installation.reader(), await rebuilt.reader()];
    const { tokens, answers } = upgraded.fixture;
    expect(await differences(url, answers, tokens)).toEqual([]);
    expect(await differences(fresh, answers, tokens)).toEqual([]);
    await Promise.all(
      answers.filter(isDocument).map(async (request) => {
        const [cached, built] = [
          await answerTo(url, request, tokens),
          await answerTo(fresh, request, tokens),
        ];
        expect({ ...request, body: cached.body }).toEqual({ ...request, body: built.body });
      }),
    );
  });

  it('if the database is younger than its cache, with the later price', async () => {
    await using installation = await upgraded.open();
    const { id, path } = firstMachine(upgraded.fixture.answers);
    await reprice(installation.sql, id, '0.123456');
    await installation.worker();
    await installation.published();
    const url = await installation.reader();
    const { body } = await answerTo(url, { token: 'all', path }, upgraded.fixture.tokens);
    expect(JSON.parse(body)).toMatchObject({ id, price: 0.123456 });
  });

  it('from a backup that is restored elsewhere, without its cache and cursors', async () => {
    await using installation = await upgraded.open();
    const [before] = await installation.sql<{ id: string }[]>`
      update lineage set database_identity = '1 00000001 5 1259' returning id`;
    await installation.worker();
    await until(async () => {
      const [now] = await installation.sql<{ id: string }[]>`select id from lineage`;
      return now?.id !== before?.id;
    });
    await installation.published();
    const { answers } = upgraded.fixture;
    const isOfFeed = ({ path }: RecordedAnswer) => path.startsWith('/v1/changes');
    expect(await installation.differences(answers.filter((answer) => !isOfFeed(answer)))).toEqual([]);
    const gone = await installation.differences(answers.filter(isOfFeed));
    expect(gone).toHaveLength(answers.filter(isOfFeed).length);
    for (const difference of gone) expect(difference).toContain('status 200 became 410');
  });
});

/** Searches name the version of the catalogue, which a publication raises. */
const isDocument = ({ path, status }: RecordedAnswer) =>
  status === 200 && !/search|recommend|exports/.test(path);

function firstMachine(answers: readonly RecordedAnswer[]): { readonly id: number; readonly path: string } {
  for (const { path, status } of answers) {
    const [, id] = /^\/v1\/machines\/(\d+)$/.exec(path) ?? [];
    if (id && status === 200) return { id: Number(id), path };
  }
  throw new Error('the fixture has no machine');
}
