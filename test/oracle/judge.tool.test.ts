/** The oracle's judge finds each kind of wrong answer, and accepts right ones. */
import { readFile } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Committed, type Health, Judge } from './judge.ts';
import { Model, type Organization, REGIONS, type Token } from './model.ts';
import { MUTATIONS } from './mutations.ts';
import { operationsOf } from './operations.ts';
import type { Answer, Question } from './question.ts';

const ACME: Organization = { slug: 'acme', id: 1, deleteBegun: undefined };
const LONG_AGO = -1_000_000;

let model: Model;
let committed: Committed[];
let health: Health;
let judge: Judge;
let token: Token;

beforeEach(() => {
  model = new Model(['acme', 'globex']);
  for (const [i, code] of REGIONS.entries()) model.regionIds.set(code, i + 1);
  for (const [i, key] of [...model.machines.rows.keys()].entries()) model.machineIds.set(key, i + 1);
  model.machines.serve();
  model.clusters.serve();
  committed = [];
  health = { wellSince: undefined, databaseWellSince: undefined };
  judge = new Judge(model, committed, () => health);
  token = {
    id: 1,
    text: 'fb_x',
    organization: { ...ACME },
    seesClusters: true,
    madeAt: LONG_AGO,
    revokeBegun: undefined,
    revokedAt: undefined,
  };
});

const REGION: Question = { about: 'region', code: 'r0', path: '/v1/machines' };
const MACHINE: Question = { about: 'machine', key: 'r0/m1', path: '/v1/machines/2' };
const clusters = (): Question => ({
  about: 'clusters',
  organization: token.organization,
  path: '/v1/clusters',
});
const region = (index = model.machines.newest) => model.region('r0', index) ?? '';
const answer = (body: string, more: Partial<Answer> = {}): Answer => ({
  status: 200,
  tier: 'memory',
  asOf: undefined,
  retryAfter: undefined,
  body,
  ...more,
});
const judged = (question: Question, given: Answer) => judge.end(judge.begin(question, token), given);
const reprice = (price: number) => {
  model.machines.set('r0/m1', { price, isListed: true });
  model.machines.serve();
};

describe('an answer', () => {
  it('is right if it is any state of an upstream since the last answer', () => {
    const before = region();
    reprice(7);
    expect(judged(REGION, answer(before))).toBeUndefined();
    expect(judged(REGION, answer(region()))).toBeUndefined();
    expect(judged(MACHINE, answer(model.machine('r0/m1', 1) ?? ''))).toBeUndefined();
    expect(judged(clusters(), answer(`[${model.cluster('acme/primary', 0)}]`))).toBeUndefined();
  });

  it('is wrong if no upstream had this state, or no worker read it', () => {
    expect(judged(REGION, answer(region().replace('0.001', '0.002')))).toMatch('never true');
    expect(judged(REGION, answer(` ${region()}`))).toMatch('never true');
    model.machines.set('r0/m1', { price: 7, isListed: true });
    expect(judged(REGION, answer(region()))).toMatch('never true');
  });

  it('is wrong if it is older than an answer before the request', () => {
    const before = region();
    reprice(7);
    const early = judge.begin(REGION, token);
    expect(judged(MACHINE, answer(model.machine('r0/m1', 1) ?? ''))).toBeUndefined();
    expect(judged(REGION, answer(before))).toMatch('it went back: to state 0, though the reader had given 1');
    expect(judge.end(early, answer(before))).toBeUndefined();
  });

  it('is wrong if it is of another organization', () => {
    expect(judged(clusters(), answer(`[${model.cluster('globex/primary', 0)}]`))).toMatch('never true');
  });

  it('is wrong if it is older than it states', () => {
    const before = region();
    reprice(7);
    const { since } = model.machines.at(1);
    expect(judged(REGION, answer(before, { asOf: since }))).toBeUndefined();
    expect(judged(REGION, answer(before, { asOf: since + 5 }))).toMatch('it is older than it says');
  });

  it('is wrong if no server is broken and it is behind', () => {
    const before = region();
    reprice(7);
    committed.push({ feed: 'machines', index: 1, at: performance.now() - 20_000 });
    expect(judged(REGION, answer(before))).toBeUndefined();
    health = { wellSince: LONG_AGO, databaseWellSince: LONG_AGO };
    // A new reader may be behind.
    expect(judged(REGION, answer(before))).toBeUndefined();
    judge = new Judge(model, committed, () => health, LONG_AGO);
    expect(judged(REGION, answer(before))).toMatch('it is behind: state 0, though 1 was committed');
    expect(judged(REGION, answer('', { status: 503, retryAfter: '1' }))).toMatch(
      '503 while nothing was broken',
    );
  });

  it('after a restart is no older than the answers a second before the stop, and may be late', () => {
    const before = region();
    reprice(7);
    expect(judged(REGION, answer(region()))).toBeUndefined();
    health = { wellSince: LONG_AGO, databaseWellSince: LONG_AGO };
    judge.startedAgain(performance.now() + 1001);
    expect(judged(REGION, answer(before))).toMatch('it went back: to state 0, though the reader had given 1');
    expect(judged(REGION, answer('', { status: 503, retryAfter: '1' }))).toBeUndefined();
    judge.startedAgain(performance.now());
    expect(judged(REGION, answer(before))).toBeUndefined();
    expect(judged(REGION, answer(region().replace('0.001', '0.002')))).toMatch('never true');
  });

  it('after a restart never undoes a revocation', () => {
    expect(judged(REGION, answer(region()))).toBeUndefined();
    token.revokeBegun = performance.now();
    expect(judged(REGION, answer('', { status: 401 }))).toBeUndefined();
    judge.startedAgain(performance.now());
    expect(judged(REGION, answer(region()))).toMatch('had been refused as revoked');
  });

  it('is wrong as an error without a fault', () => {
    expect(judged(REGION, answer('', { status: 500 }))).toMatch('the status is 500');
    expect(judged(REGION, answer('', { status: 404 }))).toMatch('a list was not found');
    expect(judged(REGION, answer('', { status: 503 }))).toMatch('503 without Retry-After');
    expect(judged(REGION, answer('', { status: 503, retryAfter: '1' }))).toBeUndefined();
  });

  it('shows a dropped cluster for a while, and never again', () => {
    const all = `[${model.cluster('acme/primary', 0)}]`;
    model.clusters.set('acme/primary', undefined);
    model.clusters.serve();
    expect(judged(clusters(), answer(all))).toBeUndefined();
    expect(judged(clusters(), answer('[]'))).toBeUndefined();
    expect(judged(clusters(), answer(all))).toMatch('it went back');
  });

  it('shows a dropped cluster in the state of its last read', () => {
    const read = `[${model.cluster('acme/primary', 0)}]`;
    model.clusters.set('acme/primary', { name: 'never read', status: 'Stopped', shards: 2 });
    const neverRead = `[${model.cluster('acme/primary', 1)}]`;
    model.clusters.set('acme/primary', undefined);
    model.clusters.serve();
    expect(judged(clusters(), answer(read))).toBeUndefined();
    expect(judged(clusters(), answer(neverRead))).toMatch('it was never true');
  });
});

describe('a token', () => {
  it('that is valid is not refused once it was accepted', () => {
    expect(judged(REGION, answer('', { status: 401 }))).toBeUndefined();
    expect(judged(REGION, answer(region()))).toBeUndefined();
    expect(judged(REGION, answer('', { status: 401 }))).toMatch('a good token was refused');
  });

  it('is refused for ever', () => {
    expect(judged(REGION, answer(region()))).toBeUndefined();
    token.revokeBegun = performance.now();
    expect(judged(REGION, answer(region()))).toBeUndefined();
    expect(judged(REGION, answer('', { status: 401 }))).toBeUndefined();
    expect(judged(REGION, answer(region()))).toMatch('had been refused as revoked');
  });

  it('is accepted no longer after its revocation than documented', () => {
    token.revokeBegun = LONG_AGO;
    token.revokedAt = performance.now() - 60_000;
    expect(judged(REGION, answer(region()))).toBeUndefined();
    health = { wellSince: undefined, databaseWellSince: LONG_AGO };
    expect(judged(REGION, answer(region()))).toMatch('while PostgreSQL was well');
    health = { wellSince: LONG_AGO, databaseWellSince: LONG_AGO };
    expect(judged(REGION, answer(region()))).toMatch('while nothing was broken');
  });

  it('without the scope sees no clusters', () => {
    token = { ...token, seesClusters: false };
    expect(judged(clusters(), answer('', { status: 403 }))).toBeUndefined();
    expect(judged(clusters(), answer('[]'))).toMatch('without the scope');
  });
});

it('a seed always has the same operations, and another seed has others', () => {
  expect(operationsOf(7)).toEqual(operationsOf(7));
  expect(operationsOf(7)).not.toEqual(operationsOf(8));
});

it('every defect replaces a text that the product has once', async () => {
  const root = new URL('../../', import.meta.url);
  for (const { name, file, find } of MUTATIONS) {
    const source = await readFile(new URL(file, root), 'utf8');
    expect([name, source.split(find).length - 1]).toEqual([name, 1]);
  }
});
