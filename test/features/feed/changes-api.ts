/** The API over real sockets with entries in its feed, for tests of `/v1/changes`. */
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { expect } from 'vitest';
import type { RequestOutcome } from '../../../src/domain/request-outcome.ts';
import { type ApiDeps, buildApp } from '../../../src/http/app.ts';
import { listen, PATIENT } from '../../http/harness.ts';
import type { sceneForEachTest } from '../../snapshot/scene.ts';
import type { Page } from './copy.ts';
import { feedPublisher } from './feed-publisher.ts';

export type ChangesApi = Awaited<ReturnType<typeof serveChanges>>;

export async function serveChanges(
  scene: ReturnType<typeof sceneForEachTest>,
  limits: ApiDeps['limits'] = {},
) {
  const publisher = feedPublisher(scene.store.db, scene.cache);
  // The feed contains each version of the sample's lists except the last one.
  await scene.sql`update regions set told_version = version - 1`;
  await scene.sql`update organizations set told_version = clusters_version - 1`;
  await publisher.publishDirty();
  const reader = await scene.linkedReader();
  const observed: RequestOutcome[] = [];
  const app = buildApp({
    ...reader,
    observe: (outcome) => observed.push(outcome),
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1.2.3',
    limits: { ...PATIENT, ...limits },
  });
  const port = await listen(app);
  const open: ClientRequest[] = [];

  async function get(path: string, bearer: string, headers: Record<string, string> = {}, method = 'GET') {
    const sent = request({
      port,
      path,
      method,
      agent: false,
      headers: { authorization: `Bearer ${bearer}`, ...headers },
    }).end();
    open.push(sent);
    // A client sees a broken connection in its answer.
    sent.on('error', () => {});
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    answer.setEncoding('utf8').on('error', () => {});
    return answer;
  }
  const closing = new AsyncDisposableStack();
  closing.defer(() => app.close());
  closing.defer(() => {
    for (const each of open) each.destroy();
  });
  return {
    app,
    reader,
    publisher,
    observed,
    get,
    async page(path: string, bearer: string, status = 200) {
      const answer = await get(path, bearer);
      const body = (await answer.toArray()).join('');
      expect(answer.statusCode, body).toBe(status);
      return JSON.parse(body) as Page & { readonly type: string; readonly parameter?: string };
    },
    /** A stream and its events so far. */
    async stream(bearer: string, headers: Record<string, string> = {}, query = '') {
      const answer = await get(`/v1/changes${query}`, bearer, { accept: 'text/event-stream', ...headers });
      const seen = { text: '', isOver: false };
      answer.on('data', (text: string) => {
        seen.text += text;
      });
      answer.on('close', () => {
        seen.isOver = true;
      });
      answer.on('error', () => {});
      return { answer, seen };
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
