import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { inLogContext } from '../../src/app/log-context.ts';
import { Unavailable } from '../../src/snapshot/document/answer.ts';
import { recordedLog } from '../support/log-lines.ts';
import { testApi } from './harness.ts';
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
