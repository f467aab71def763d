/** The check of a running API, which the workflow of the chart uses, finds what it should. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { freePort } from '../../src/processes/port.ts';
import { startPublished } from '../snapshot/published.ts';
import { CLI, startProgram } from '../support/program.ts';
import { until } from '../support/until.ts';
import { checkApi } from './programs/check-api.ts';

it('passes for a reader, and names an operation that answers otherwise', async () => {
  await using published = await startPublished();
  const port = await freePort();
  const env = { PATH: process.env.PATH, DATABASE_URL: published.databaseUrl, REDIS_URL: published.redisUrl };
  await using serve = await startProgram(CLI, ['serve'], { env: { ...env, PORT: `${port}`, OPS_PORT: '0' } });
  const url = `http://127.0.0.1:${port}`;
  await until(async () => (await fetch(`${url}/readyz`)).ok);
  const { passed, problems } = await checkApi(url, published.token);
  // No worker has written the files.
  const noFiles = expect.stringMatching(/^\/v1\/exports answers 503/);
  expect(problems).toEqual([noFiles]);
  expect(passed.length).toBeGreaterThanOrEqual(10);

  // The same API with a wrong machine and an open list of clusters.
  const proxy = createServer(async ({ url: path = '', headers }, reply) => {
    const authorization =
      path === '/v1/clusters' ? `Bearer ${published.token}` : (headers.authorization ?? '');
    const answer = await fetch(`${url}${path}`, { headers: { authorization } });
    const body = await answer.text();
    const isMachine = /^\/v1\/machines\/\d+$/.test(path) && answer.ok;
    reply.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' });
    reply.end(isMachine ? body.replace('"cpu"', '"cores"') : body);
  });
  await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
  const wrong = await checkApi(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, published.token);
  await proxy[Symbol.asyncDispose]();
  expect(serve.child.exitCode).toBeNull();
  expect(wrong.problems.toSorted()).toEqual([
    '/v1/clusters answers 200 without a token',
    noFiles,
    expect.stringMatching(/^\/v1\/machines\/\d+: .*cpu/),
  ]);
});
