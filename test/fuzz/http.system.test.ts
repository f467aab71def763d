/** Fuzzes the HTTP API: requests generated from its schemas, and raw bytes on sockets. */

import fc from 'fast-check';
import type { HTTPMethods } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { sceneForEachTest } from '../snapshot/scene.ts';
import { budget, fuzz } from './support/budget.ts';
import { converse, rawConnectionsOf } from './support/raw.ts';
import { bytesOf, type FuzzRequest, requestsOf } from './support/requests.ts';
import { answersIn, type FuzzAnswer, wrongWith } from './support/verdict.ts';
import { type FuzzWorld, openFuzzWorld } from './support/world.ts';

const scene = sceneForEachTest();

/** Requests of one round each. CI sends about 10,000 requests, and the nightly workflow for an hour. */
const IN_PROCESS = 50;
const CONNECTIONS = 8;
const REQUESTS_OF_CONNECTION = 10;
const RAW_CONNECTIONS = 200;

async function open(): Promise<FuzzWorld> {
  const world = await openFuzzWorld(scene);
  onTestFinished(() => world[Symbol.asyncDispose]());
  return world;
}

const markersOf = ({ key }: FuzzRequest) => (key.marker === undefined ? [] : [key.marker]);

function judge(request: FuzzRequest, answer: FuzzAnswer): void {
  const { method, operation } = request;
  const wrong = wrongWith(answer, {
    markers: markersOf(request),
    sent: `${request.target} ${JSON.stringify(request.headers)}`,
    validate: operation?.validate,
  });
  if (wrong !== undefined) throw new Error(`${wrong}, for ${method} ${request.target.slice(0, 300)}`);
}

async function send(world: FuzzWorld, request: FuzzRequest): Promise<FuzzAnswer> {
  const { method, target: url, headers, body } = request;
  const answer = await world.app.inject({
    method: method as HTTPMethods,
    url,
    headers,
    ...(body === '' ? {} : { payload: body }),
  });
  return {
    status: answer.statusCode,
    headers: answer.headers as FuzzAnswer['headers'],
    body: answer.rawPayload,
    isBare: method === 'HEAD' || answer.statusCode === 304,
  };
}

{
  const rounds = budget('requests from the schemas', 70, 0.25);
  it('answers each request that its schemas allow, and near misses', {
    timeout: rounds.timeout,
  }, async () => {
    const world = await open();
    const requests = fc.array(requestsOf(world), { minLength: IN_PROCESS, maxLength: IN_PROCESS });
    const seen = new Map<number, number>();
    await fuzz(
      fc.asyncProperty(requests, async (batch) => {
        for (const request of batch) {
          const answer = await send(world, request);
          judge(request, answer);
          seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
        }
      }),
      rounds,
    );
    report('in process', seen);
    // A fuzz that only gets 401 proves nothing.
    for (const status of [200, 304, 400, 401, 403, 404, 405, 406])
      expect(seen.get(status), `${status}`).toBeGreaterThan(0);
  });
}

{
  const rounds = budget('requests on connections', 70, 0.35);
  it('answers pipelined requests of different organizations in order, each with its data', {
    timeout: rounds.timeout,
  }, async () => {
    const world = await open();
    const pipeline = fc.array(requestsOf(world), {
      minLength: REQUESTS_OF_CONNECTION,
      maxLength: REQUESTS_OF_CONNECTION,
    });
    const seen = new Map<number, number>();
    await fuzz(
      fc.asyncProperty(
        fc.array(pipeline, { minLength: CONNECTIONS, maxLength: CONNECTIONS }),
        async (connections) => {
          await Promise.all(
            connections.map(async (requests) => {
              const last = requests.length - 1;
              const bytes = requests.map((request, index) =>
                bytesOf(request, index === last ? 'close' : 'keep-alive'),
              );
              const came = await converse(world.port, {
                bytes: Buffer.concat(bytes),
                cuts: [],
                end: 'waits',
              });
              const answers = answersIn(
                came,
                requests.map(({ method }) => method),
              );
              for (const [index, answer] of answers.entries()) {
                judge(requests[index] ?? expect.unreachable('more answers than requests'), answer);
                seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
              }
              if (answers.length < requests.length && answers.at(-1)?.headers.connection !== 'close')
                throw new Error(`no answer to ${bytes[answers.length]?.toString('latin1').slice(0, 300)}`);
            }),
          );
        },
      ),
      rounds,
    );
    report('on connections', seen);
    for (const status of [200, 400, 401, 404, 405]) expect(seen.get(status), `${status}`).toBeGreaterThan(0);
  });
}

{
  const rounds = budget('raw bytes', 8, 0.4);
  it('answers malformed bytes with a problem, or closes their connection', {
    timeout: rounds.timeout,
  }, async () => {
    const world = await open();
    const connections = fc.array(rawConnectionsOf(world), {
      minLength: RAW_CONNECTIONS,
      maxLength: RAW_CONNECTIONS,
    });
    const seen = new Map<number, number>();
    await fuzz(
      fc.asyncProperty(connections, async (batch) => {
        await Promise.all(
          batch.map(async (connection) => {
            const came = await converse(world.port, connection);
            // A request with a token on this connection may read that organization's data.
            const markers = world.keys.flatMap(({ token, marker }) =>
              marker !== undefined && token !== '' && connection.bytes.includes(token) ? [marker] : [],
            );
            for (const answer of cutAnswers(came, connection.end)) {
              const wrong = wrongWith(answer, { markers, sent: connection.bytes.toString('latin1') });
              if (wrong !== undefined)
                throw new Error(
                  `${wrong}, for ${JSON.stringify(connection.bytes.toString('latin1').slice(0, 600))}`,
                );
              seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
            }
          }),
        );
        expect((await fetch(`http://127.0.0.1:${world.port}/healthz`)).status).toBe(200);
      }),
      rounds,
    );
    report('raw', seen);
    for (const status of [400, 401, 405, 408, 431, 505])
      expect(seen.get(status), `${status}`).toBeGreaterThan(0);
  });
}

/** A client that disconnects does not get everything: the received part is checked for other organizations' data. */
function cutAnswers(came: Buffer, end: string): FuzzAnswer[] {
  if (end !== 'breaks off') return answersIn(came);
  const whole = came.lastIndexOf('HTTP/1.1 ');
  expect(came.subarray(Math.max(whole, 0)).toString('latin1')).not.toMatch(/^HTTP\/1\.1 50[0-4]/);
  return [];
}

function report(what: string, seen: ReadonlyMap<number, number>): void {
  const total = [...seen.values()].reduce((sum, count) => sum + count, 0);
  const statuses = [...seen].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
  process.stdout.write(`${total} answers ${what}: ${statuses.join(', ')}\n`);
}
