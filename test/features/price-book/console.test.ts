/** The routes of price books in the operators' server: answers, roles, and rows of the audit log. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOrganization } from '../../../src/db/organizations.ts';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import { type ConsoleScene, openConsoleScene } from '../console/scene.ts';
import { addOperators, Browser } from '../operators/accounts-scene.ts';

let scene: ConsoleScene;
const browsers = new Map<string, Browser>();
const BOOK = '/api/organizations/acme/price-book';

beforeAll(async () => {
  scene = await openConsoleScene();
  await addOperators(scene.worker, { zoe: 'admin' });
  for (const name of ['vera', 'ada', 'zoe']) {
    const browser = new Browser(scene.app);
    expect((await browser.signIn(name)).statusCode).toBe(303);
    browsers.set(name, browser);
  }
  await createOrganization(scene.worker.store.db, 'acme', 'Acme');
});
afterAll(() => scene[Symbol.asyncDispose]());

async function send(method: 'GET' | 'POST', path: string, payload?: object, name = 'zoe') {
  const browser = browsers.get(name) ?? expect.unreachable(name);
  const answer = await browser.sendRequest(method, path, payload ? { payload } : {});
  return { status: answer.statusCode, body: answer.json() };
}

describe('a price book in the console', () => {
  it('is changed by admins alone, and read by every operator', async () => {
    for (const name of ['vera', 'ada'])
      expect(await send('POST', BOOK, { discount: '5' }, name)).toMatchObject({ status: 403 });
    const added = await send('POST', BOOK, { family: 'cx', discount: 12.5, reason: 'contract 7' });
    expect(added).toMatchObject({
      status: 200,
      body: { entry: { family: 'cx', discount: '12.5', state: 'applies' }, published: true },
    });
    const { id } = added.body.entry;
    expect(await send('GET', BOOK, undefined, 'vera')).toMatchObject({
      status: 200,
      body: { organization: 'acme', entries: [{ id, family: 'cx' }] },
    });
    expect(await send('POST', `${BOOK}/${id}/end`, {}, 'ada')).toMatchObject({ status: 403 });
    expect(await send('POST', `${BOOK}/${id}/end`, {})).toMatchObject({
      status: 200,
      body: { id, to: expect.stringMatching(/^20/), published: true },
    });
    expect((await send('GET', BOOK)).body.entries).toEqual([]);
    expect((await send('GET', `${BOOK}?ended=yes`)).body.entries).toMatchObject([{ id, state: 'ended' }]);
    const { rows } = await auditRecords(scene.worker.store.db, {
      subject: { kind: 'organization', id: 'acme' },
    });
    expect(rows).toMatchObject([
      { by: 'zoe', action: 'price.end', details: { entry: id } },
      { by: 'zoe', action: 'price.add', reason: 'contract 7', details: { family: 'cx', discount: '12.5' } },
    ]);
  });

  it('refuses bad entries with the field, and unknown organizations and entries', async () => {
    expect(await send('POST', BOOK, { discount: '-1' })).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/^discount "-1" is negative; give a percentage/) },
    });
    expect(await send('POST', BOOK, { until: '2099-01-01', discount: '1' })).toMatchObject({ status: 400 });
    expect(await send('GET', BOOK.replace('acme', 'none'))).toMatchObject({ status: 404 });
    expect(await send('POST', BOOK.replace('acme', 'none'), { discount: '1' })).toMatchObject({
      status: 404,
    });
    expect(await send('POST', `${BOOK}/999/end`, {})).toMatchObject({ status: 404 });
  });
});
