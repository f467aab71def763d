/**
 * A server of the API's extensions. It follows the documentation strictly and rejects each request with unknown
 * parts. Tests of clients break its connections at any point.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Change, Costs, MachineWithFacts } from '../../../packages/client/src/index.ts';
import { until } from '../../support/until.ts';

const INTEGER = /^[1-9]\d{0,5}$/;
const DECIMAL = /^\d{1,9}(\.\d{1,18})?$/;
const IDS = /^[1-9]\d*(,[1-9]\d*){0,99}$/;
const FILTER = {
  ram_unit: /^(AsSold|Binary|Decimal)$/,
  provider: IDS,
  region: IDS,
  architecture: /^[a-z0-9_]+$/,
  cpu_kind: /^(dedicated|shared)$/,
};

/** The parameters of each path, with their formats. */
const PARAMETERS: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  '/v1/machines/search': {
    ...FILTER,
    min_cpu: INTEGER,
    max_cpu: INTEGER,
    min_ram: DECIMAL,
    max_ram: DECIMAL,
    max_price: DECIMAL,
    min_ram_per_cpu: DECIMAL,
    max_ram_per_cpu: DECIMAL,
    name: /^.{1,100}$/s,
    sort: /^-?(price|price_per_cpu|price_per_ram|cpu|ram)$/,
    limit: /^([1-9]\d?|[1-4]\d\d|500)$/,
    cursor: /^place-\d+$/,
    fields: /^[a-z_]+(,[a-z_]+)*$/,
  },
  '/v1/machines/recommend': { ...FILTER, cpu: INTEGER, ram: DECIMAL, hours: DECIMAL, disk: DECIMAL },
  '/v1/costs': {
    term: /^[a-z0-9_]+$/,
    prices: /^(own|list)$/,
    at: /^\d{4}-.*Z$/,
    limit: INTEGER,
    cursor: /^\w+$/,
  },
  '/v1/changes': {
    after: /^at-\d+$/,
    limit: /^([1-9]\d{0,2}|1000)$/,
  },
  '/v1/exports': {},
  '/v1/exports/machines.parquet': {},
  '/v1/exports/machines.ndjson': {},
};

export const FILE = Buffer.from(Array.from({ length: 200_000 }, (_, i) => i % 251));
const FILE_ETAG = '"file-1"';

export const MACHINES: readonly MachineWithFacts[] = Array.from({ length: 7 }, (_, i) => ({
  id: i + 1,
  name: `cax${i + 1}1`,
  ram: 4 * (i + 1),
  cpu: 2 * (i + 1),
  price: 0.0001 * (i + 1),
  ram_unit: 'Decimal',
  provider: { id: 5, name: 'Hetzner' },
  region: { id: 3, name: 'Falkenstein', code: 'fsn1' },
  architecture: 'arm64',
  generation: null,
  cpu_kind: 'shared',
  local_disk: 40,
  network: null,
  included_traffic: null,
  included_ipv4: null,
  orderable_until: null,
  retires_at: null,
}));

const AMOUNT = { per_minute: 0.0048, per_month: 210.24 };
const TOTAL = { ...AMOUNT, known_per_minute: 0.0048, known_per_month: 210.24, complete: true };
const PLACE = {
  provider: { id: 5, name: 'Hetzner' },
  region: { name: 'Falkenstein', code: 'fsn1' },
};
const COSTS: Costs = {
  term: 'on_demand',
  prices: 'own',
  at: null,
  total: { clusters: 1, ...TOTAL },
  providers: [{ provider: PLACE.provider, clusters: 1, ...TOTAL }],
  regions: [{ ...PLACE, clusters: 1, ...TOTAL }],
  clusters: [
    {
      slug: 'cluster-test',
      name: 'Test',
      ...PLACE,
      machine: { id: 1, name: 'cax11' },
      price_source: 'current',
      nodes: 3,
      ...TOTAL,
    },
  ],
  next: null,
};

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface ReceivedRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: IncomingMessage['headers'];
}

/** The fields of a change besides its place. */
type NewChange = Change extends infer C ? (C extends Change ? Omit<C, 'id' | 'at'> : never) : never;

export class FakeExtensions implements AsyncDisposable {
  readonly token: string;
  readonly received: ReceivedRequest[] = [];
  /**
   * How the feed answers a request for an event stream. `silent` starts a stream that delivers nothing, as behind a
   * buffering proxy.
   */
  streams: 'live' | 'refused' | 'silent' = 'live';
  url = '';
  readonly #server = createServer((request, response) => this.#answer(request, response));
  readonly #first: Handler[] = [];
  readonly #changes: Change[] = [];
  /** Each sends the new changes of one stream. */
  readonly #senders = new Set<() => void>();
  readonly #open = new Set<ServerResponse>();
  #oldest = 0;
  #isRevoked = false;

  readonly #otherwise: Handler | undefined;

  private constructor(token: string, otherwise: Handler | undefined) {
    this.token = token;
    this.#otherwise = otherwise;
  }

  /** @param otherwise answers each path outside of the extensions */
  static async start(otherwise?: Handler, token = 'fb_test'): Promise<FakeExtensions> {
    const fake = new FakeExtensions(token, otherwise);
    fake.#server.listen(0, '127.0.0.1');
    await once(fake.#server, 'listening');
    fake.url = `http://127.0.0.1:${(fake.#server.address() as AddressInfo).port}`;
    return fake;
  }

  /** Answers of the next requests, one each. */
  first(...handlers: readonly Handler[]): void {
    this.#first.push(...handlers);
  }

  happens(...changes: readonly NewChange[]): void {
    for (const change of changes) {
      const entry = { ...change, id: `at-${this.#changes.length + 1}`, at: '2026-11-20T12:00:00Z' } as Change;
      this.#changes.push(entry);
    }
    for (const send of this.#senders) send();
  }

  /** Places before the last one are expired. */
  forget(): void {
    this.#oldest = this.#changes.length;
  }

  revoke(): void {
    this.#isRevoked = true;
    this.#cut((response) => response.end());
  }

  get listeners(): number {
    return this.#open.size;
  }

  /** Waits until a client has a stream open. */
  async isFollowed(): Promise<void> {
    await until(() => this.#open.size > 0, { what: 'a stream of changes' });
  }

  /** Breaks the streams in the middle of a chunk, as a network does. */
  breakStreams(): void {
    this.#cut((response) => response.destroy());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  #cut(end: (response: ServerResponse) => void): void {
    for (const response of this.#open) end(response);
    this.#open.clear();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://fake');
    const query = Object.fromEntries(searchParams);
    this.received.push({ path: pathname, query, headers: request.headers });
    const first = this.#first.shift();
    if (first) {
      first(request, response);
      return;
    }
    const known = PARAMETERS[pathname];
    if (!known && this.#otherwise) this.#otherwise(request, response);
    else if (request.headers.authorization !== `Bearer ${this.token}` || this.#isRevoked)
      problem(response, 401, 'about:blank');
    else if (request.method !== 'GET') problem(response, 405, 'about:blank');
    else if (!known) problem(response, 404, 'about:blank');
    else {
      const refused = [...searchParams].find(
        ([name, value]) => !known[name]?.test(value) || searchParams.getAll(name).length > 1,
      );
      if (refused)
        problem(
          response,
          400,
          `urn:fleetbook:problem:${known[refused[0]] ? 'invalid' : 'unknown'}-parameter`,
          {
            parameter: refused[0],
          },
        );
      else this.#say(pathname, query, request, response);
    }
  }

  #say(
    path: string,
    query: Record<string, string>,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    if (path === '/v1/machines/search') json(request, response, searched(query));
    else if (path === '/v1/machines/recommend') recommended(query, request, response);
    else if (path === '/v1/costs') json(request, response, COSTS);
    else if (path === '/v1/changes') this.#feed(query, request, response);
    else if (path === '/v1/exports') {
      const created_at = '2026-11-20T12:00:00Z';
      const one = { file: 'machines.parquet', version: 'v1', bytes: FILE.length, rows: 7, created_at };
      json(request, response, [{ ...one, etag: FILE_ETAG }]);
    } else sendFile(path, request, response);
  }

  #feed(query: Record<string, string>, request: IncomingMessage, response: ServerResponse): void {
    const place = (cursor: string) => Number(/^at-(\d+)$/.exec(cursor)?.[1]);
    const now = this.#changes.length;
    const cursor = String(request.headers['last-event-id'] ?? query.after ?? `at-${now}`);
    const from = place(cursor);
    if (Number.isNaN(from) || from > now) problem(response, 400, 'urn:fleetbook:problem:invalid-parameter');
    else if (from < this.#oldest)
      problem(response, 410, 'urn:fleetbook:problem:cursor-gone', { next: `at-${now}` });
    else if (request.headers.accept === 'text/event-stream') this.#stream(from, response);
    else {
      const changes = this.#changes.slice(from, from + Number(query.limit ?? 100));
      const next = `at-${from + changes.length}`;
      json(request, response, { changes, next, more: from + changes.length < now });
    }
  }

  #stream(from: number, response: ServerResponse): void {
    if (this.streams === 'refused') {
      problem(response, 406, 'about:blank');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.flushHeaders();
    this.#open.add(response);
    response.once('close', () => this.#open.delete(response));
    if (this.streams === 'silent') return;
    response.write('retry: 20\n\n: heartbeat\n\n');
    let entry = from;
    const sendChanges = () => {
      for (const change of this.#changes.slice(entry)) {
        entry += 1;
        response.write(`id: ${change.id}\nevent: ${change.type}\ndata: ${JSON.stringify(change)}\n\n`);
      }
    };
    this.#senders.add(sendChanges);
    response.once('close', () => this.#senders.delete(sendChanges));
    sendChanges();
  }
}

function problem(
  response: ServerResponse,
  status: number,
  type: string,
  members: Readonly<Record<string, unknown>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/problem+json', 'x-request-id': 'request-1' });
  const title = `Title ${status}`;
  response.end(JSON.stringify({ type, title, status, detail: 'Why.', ...members, instance: 'request-1' }));
}

function json(request: IncomingMessage, response: ServerResponse, value: unknown): void {
  const body = JSON.stringify(value);
  const etag = `"${Buffer.from(body).toString('base64url').slice(-20)}${body.length}"`;
  const headers = { etag, 'fleetbook-currency': 'USD', 'fleetbook-as-of': '2026-11-20T12:00:00Z' };
  if (request.headers['if-none-match'] === etag) response.writeHead(304, headers).end();
  else response.writeHead(200, { ...headers, 'content-type': 'application/json' }).end(body);
}

function searched(query: Record<string, string>) {
  const { min_cpu = '0', limit = '50', cursor = 'place-0', ram_unit = 'AsSold', fields } = query;
  const found = MACHINES.filter(({ cpu }) => cpu >= Number(min_cpu));
  const start = Number(cursor.slice('place-'.length));
  const end = start + Number(limit);
  const wanted = fields?.split(',');
  const machines = found
    .slice(start, end)
    .map((machine) =>
      wanted ? Object.fromEntries(wanted.map((name) => [name, Reflect.get(machine, name)])) : machine,
    );
  const next = end < found.length ? `place-${end}` : null;
  return { machines, next, ram_unit, version: 'v1', moved: false };
}

function recommended(
  query: Record<string, string>,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const missing = ['cpu', 'ram'].find((name) => query[name] === undefined);
  if (missing !== undefined) {
    problem(response, 400, 'urn:fleetbook:problem:invalid-parameter', { parameter: missing });
    return;
  }
  const hours = Number(query.hours ?? 730);
  const machine = MACHINES.find(({ cpu, ram }) => cpu >= Number(query.cpu) && ram >= Number(query.ram));
  const entry = machine && {
    machine,
    hours,
    total: machine.price * 60 * hours,
    computed: `${machine.price} a minute × 60 × ${hours} hours`,
  };
  const { ram_unit = 'AsSold' } = query;
  json(request, response, { recommendations: entry ? [entry] : [], ram_unit, version: 'v1' });
}

/** Part sizes of a written file, so that a client sees more than one chunk. */
const CHUNK = 16 * 1024;

function sendFile(path: string, { headers }: IncomingMessage, response: ServerResponse): void {
  const common = { etag: FILE_ETAG, 'fleetbook-export-version': 'v1', 'accept-ranges': 'bytes' };
  if (path.endsWith('.ndjson') && /gzip/.test(String(headers['accept-encoding']))) {
    const coded = gzipSync(FILE);
    const length = coded.length;
    response.writeHead(200, { ...common, 'content-encoding': 'gzip', 'content-length': length }).end(coded);
    return;
  }
  const [, start] = /^bytes=(\d+)-$/.exec(headers.range ?? '') ?? [];
  const isPart = start !== undefined && headers['if-range'] === FILE_ETAG;
  const body = isPart ? FILE.subarray(Number(start)) : FILE;
  response.writeHead(isPart ? 206 : 200, {
    ...common,
    'content-length': body.length,
    ...(isPart && { 'content-range': `bytes ${start}-${FILE.length - 1}/${FILE.length}` }),
  });
  for (let at = 0; at < body.length; at += CHUNK) response.write(body.subarray(at, at + CHUNK));
  response.end();
}

/** Sends the first bytes of the file and breaks the connection once they are sent. */
export function breakFileAfter(bytes: number): Handler {
  return (_, response) => {
    response.writeHead(200, {
      etag: FILE_ETAG,
      'content-length': FILE.length,
      'fleetbook-export-version': 'v1',
    });
    response.write(FILE.subarray(0, bytes), () => {
      // Bytes in the system's buffer would be lost with the connection.
      until(() => response.writableLength === 0).then(
        () => response.socket?.end(),
        () => response.destroy(),
      );
    });
  };
}
