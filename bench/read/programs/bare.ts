/**
 * The yardstick: `node:http` that writes an answer without reading the request. Its argument is a file of captured
 * answers. Each answer has a separate port, since a choice by path would mean reading the request.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onParentExit, reportReady } from '../../../src/processes/ipc.ts';
import type { StoredAnswer } from '../capture.ts';

const answers = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as Record<string, StoredAnswer>;
const ports: Record<string, number> = {};
for (const [id, answer] of Object.entries(answers)) {
  const { status, headers, keepAliveMs } = answer;
  const body = Buffer.from(answer.body, 'base64');
  const server = createServer(
    { keepAliveTimeout: keepAliveMs, requestTimeout: 20_000, headersTimeout: 10_000 },
    body.length === 0
      ? (_, response) => response.writeHead(status, headers).end()
      : (_, response) => response.writeHead(status, headers).end(body),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ports[id] = (server.address() as AddressInfo).port;
}
reportReady(ports);
onParentExit(() => process.exit());
