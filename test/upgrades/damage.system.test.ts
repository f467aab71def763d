/** The comparison of an upgrade finds damage: each kind of it is a difference. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeDocument, encodeDocument } from '../../src/snapshot/document/format.ts';
import { differencesOf, type RecordedAnswer } from './support/recorded-answers.ts';
import { type Upgraded, upgradedFrom } from './support/upgraded.ts';

const RELEASE = '0.1.0';
let upgraded: Upgraded;
beforeAll(async () => {
  upgraded = await upgradedFrom(RELEASE);
});
afterAll(() => upgraded?.[Symbol.asyncDispose]());

it.each([
  ['a price', `update machines set price = price * 2 where id = 1`, /\/price: .* became /],
  ['a token that works again', `update tokens set revoked_at = null`, /status 401 became 200/],
  ['another key of cursors', `update feed_head set cursor_key = gen_random_uuid()`, /status 200 became/],
  ['a lost file', `delete from export_chunks`, /^\/v1\/exports\//],
])('in rows: %s', async (_, statement, difference) => {
  await using installation = await upgraded.open({ cache: 'empty' });
  await installation.owner.unsafe(`set session_replication_role = replica; ${statement}`);
  expect(await installation.differences()).toContainEqual(expect.stringMatching(difference));
});

it('in the cache: a document of the right version with another price', async () => {
  await using installation = await upgraded.open();
  const { path, regionId } = someRegion(upgraded.fixture.answers);
  // The worker first publishes every document whose format has changed since the release. Without a worker a reader trusts
  // PostgreSQL alone.
  await installation.worker();
  await installation.published();
  const [key = ''] = await installation.cache.keys(`*:region:${regionId}`);
  const name = { kind: 'region', regionId } as const;
  const value = await installation.cache.getBuffer(key);
  const document = value && decodeDocument(name, value);
  if (!document) throw new Error(`the cache has no document ${key}`);
  const { version, sources, currency } = document;
  const index = new Map(JSON.parse(document.index.toString()) as [string, [number, number]][]);
  const body = Buffer.from(document.body.identity.toString().replace('"price":0', '"price":9'));
  const damaged = await encodeDocument({ name, version, body, index, sources, currency });
  await installation.cache.set(key, damaged);
  expect(await installation.differences()).toContainEqual(
    expect.stringMatching(new RegExp(`^${RegExp.escape(path)} .*/price: 0.* became 9`)),
  );
});

function someRegion(answers: readonly RecordedAnswer[]): {
  readonly path: string;
  readonly regionId: number;
} {
  for (const { path, body } of answers) {
    const [, id] = /&region=(\d+)$/.exec(path) ?? [];
    if (id && body.includes('"price":0')) return { path, regionId: Number(id) };
  }
  throw new Error('the fixture has no region with machines');
}

describe('two answers', () => {
  const answer: RecordedAnswer = {
    path: '/v1/clusters',
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: '[{"id":1,"disks":[],"version":"a"}]',
  };
  it.each([
    ['a lost field', '[{"disks":[],"version":"a"}]', ['/0/id: 1 became undefined']],
    ['another type', '[{"id":"1","disks":[],"version":"a"}]', ['/0/id: 1 became "1"']],
    ['null', '[{"id":null,"disks":[],"version":"a"}]', ['/0/id: 1 became null']],
    ['another element', '[{"id":1,"disks":[1],"version":"a"}]', ['/0/disks: 0 elements became 1']],
    ['an object', '{}', [': 1 elements became object']],
    ['a new field', '[{"id":1,"disks":[],"version":"a","new":2}]', []],
    ['an opaque value', '[{"id":1,"disks":[],"version":"b"}]', []],
  ])('%s', (_, body, expected) => {
    expect(differencesOf(answer, { ...answer, body })).toEqual(expected);
  });

  it('another header', () => {
    const headers = { 'content-type': 'text/plain' };
    expect(differencesOf(answer, { ...answer, headers })).toEqual([
      'content-type: application/json became text/plain',
    ]);
  });
});
