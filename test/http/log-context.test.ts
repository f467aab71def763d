import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { inLogContext, logFields } from '../../src/app/log-context.ts';
import { ResponseCache } from '../../src/http/hot/response-cache.ts';
import { Turns } from '../../src/http/protocol/turns.ts';
import { Unavailable } from '../../src/snapshot/document/answer.ts';
import { recordedLog } from '../support/log-lines.ts';
import { listen, testApi } from './harness.ts';
import { memoryCatalogue } from './readers.ts';

it('writes the request’s id in each of its lines, and in no other', async () => {
  const { logger, lines } = recordedLog();
  const both = Promise.withResolvers<void>();
  let reading = 0;
  const catalogue = {
    ...(await memoryCatalogue()),
    async providers() {
      reading += 1;
      if (reading === 2) both.resolve();
      await both.promise;
      await turn();
      logger.warn('a read failed');
      throw new Unavailable('nothing answers');
    },
  };
  await using api = await testApi({ logger, catalogue, inLogContext });
  const sendRequest = async () => {
    const headers = { authorization: `Bearer ${api.token}` };
    const answer = await api.app.inject({ url: '/v1/providers', headers });
    expect(answer.statusCode).toBe(503);
    return String(answer.headers['x-request-id']);
  };
  const ids = await Promise.all([sendRequest(), sendRequest()]);
  expect(new Set(ids).size).toBe(2);
  for (const id of ids) {
    const messages = lines.filter(({ requestId }) => requestId === id).map(({ msg }) => msg);
    expect(messages).toEqual(expect.arrayContaining(['a read failed', 'no fresh answer', 'answered']));
    expect(messages).toHaveLength(3);
  }
  expect(lines.every(({ requestId }) => ids.includes(String(requestId)))).toBe(true);
});

it.each([
  ['unknown', 401],
  ['lost', 503],
] as const)('has the id of the answer in lines about the lookup of a token: %s', async (token, status) => {
  const { logger, lines } = recordedLog();
  const tokens = {
    async verify() {
      await turn();
      logger.warn('a lookup');
      if (token === 'lost') throw new Unavailable('nothing answers');
      return undefined;
    },
  };
  const responses = new ResponseCache({ linked: true, addInvalidationListener: () => {} }, 1_000_000);
  await using api = await testApi({ logger, tokens, responses, inLogContext });
  const port = await listen(api.app);
  const headers = { authorization: `Bearer ${token}`, connection: 'close' };
  const answer = await fetch(`http://127.0.0.1:${port}/v1/providers`, { headers });
  expect(answer.status).toBe(status);
  const id = answer.headers.get('x-request-id');
  expect(lines.map(({ msg }) => msg)).toEqual(expect.arrayContaining(['a lookup', 'answered']));
  for (const { msg, requestId } of lines) expect(requestId, msg).toBe(id);
});

it('has the id of a read’s own request after it has waited for its turn', async () => {
  const turns = new Turns(0);
  const request = { socket: { destroyed: false } } as IncomingMessage;
  const response = { writableEnded: false } as ServerResponse;
  const read = () => {
    // Longer than a turn: the others wait.
    for (const until = performance.now() + 3; performance.now() < until; );
    return logFields();
  };
  const ids = ['first', 'second', 'third', 'fourth'];
  const reads = ids.map(
    (requestId) =>
      new Promise((resolve) =>
        inLogContext({ requestId }, () => resolve(turns.run(request, response, read))),
      ),
  );
  expect(await Promise.all(reads)).toEqual(ids.map((requestId) => ({ requestId })));
});
