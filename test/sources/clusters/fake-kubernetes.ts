import { createServer as createPlain, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecure } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { until } from '../../support/until.ts';

/** A custom resource of a test; the server assigns its resource version. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

interface Taken {
  readonly verb: 'list' | 'watch' | 'get';
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly authorization: string | undefined;
}

/** A faulty answer to the next request of that verb. */
interface Misdeed {
  readonly verb: 'list' | 'watch';
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Only for a request that continues a list. */
  readonly continued?: boolean;
  /** The connection breaks before or instead of the answer. */
  readonly cut?: boolean;
  /** The server never answers. */
  readonly silent?: boolean;
}

interface Stream {
  readonly path: string;
  readonly response: ServerResponse;
}

interface Change {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubernetesObject;
}

export interface FakeKubernetesOptions {
  /** Plurals of the resources that are installed, by group and version: `{ 'postgresql.cnpg.io/v1': 'clusters' }`. */
  readonly installed: Readonly<Record<string, string>>;
  /**
   * Groups and versions whose objects the credentials may not read (403, installed or not); with `*`, they may not
   * list groups either.
   */
  readonly forbidden?: readonly string[];
  /** The required bearer token; without one, every client is admitted. */
  readonly token?: string;
  /** Uses https; with `ca`, clients must show a certificate. */
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer; readonly ca?: Buffer };
}

const SINGLE = /^\/apis\/[^/]+\/[^/]+\/namespaces\/[^/]+\/[a-z]+\/[^/]+$/;
const LIST_QUERY = ['limit', 'continue', 'labelSelector'];
const WATCH_QUERY = ['watch', 'resourceVersion', 'allowWatchBookmarks', 'timeoutSeconds', 'labelSelector'];

/**
 * An API server on a free loopback port that stores custom resources as a real one does: one version counter, pages
 * of one snapshot, watches that start from any stored version. Leaving the scope closes it and throws if an invalid
 * request came or a planned fault was not used.
 */
export class FakeKubernetes implements AsyncDisposable {
  readonly taken: Taken[] = [];
  readonly #options: FakeKubernetesOptions;
  readonly #server: ReturnType<typeof createPlain>;
  readonly #sockets = new Set<Socket>();
  readonly #objects = new Map<string, KubernetesObject>();
  readonly #history: Change[] = [];
  readonly #pages = new Map<
    string,
    { readonly version: number; readonly rest: readonly KubernetesObject[] }
  >();
  readonly #streams = new Set<Stream>();
  readonly #misdeeds: Misdeed[] = [];
  readonly #single = new Map<string, unknown>();
  readonly #wrong: string[] = [];
  readonly #installed: Map<string, string>;
  #version = 1000;
  /** Watches from before this version get "gone". */
  #compacted = 0;

  private constructor(options: FakeKubernetesOptions) {
    this.#options = options;
    this.#installed = new Map(Object.entries(options.installed));
    const answer = (request: IncomingMessage, response: ServerResponse) => this.#answer(request, response);
    this.#server =
      options.tls === undefined
        ? createPlain(answer)
        : createSecure({ ...options.tls, requestCert: options.tls.ca !== undefined }, answer);
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(options: FakeKubernetesOptions): Promise<FakeKubernetes> {
    const fake = new FakeKubernetes(options);
    await new Promise<void>((resolve, reject) => {
      fake.#server.once('error', reject).listen(0, '127.0.0.1', resolve);
    });
    return fake;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.#options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${this.port}`;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** The number of lists, watches or single reads so far. */
  count(verb: Taken['verb']): number {
    return this.taken.filter((each) => each.verb === verb).length;
  }

  /** Waits until this many watches are open. */
  async watches(count: number): Promise<void> {
    await until(() => this.#streams.size === count, { what: `${count} open watches` });
  }

  put(object: KubernetesObject): void {
    const type = this.#objects.has(object.metadata.uid) ? 'MODIFIED' : 'ADDED';
    this.#change(type, object);
  }

  remove(uid: string): void {
    const object = this.#objects.get(uid);
    if (object === undefined) throw new Error(`there is no object ${uid}`);
    this.#change('DELETED', object);
  }

  /** Sends each watch the newest version, as a real server does about once a minute. @returns that version */
  bookmark(): string {
    this.#version += 1;
    for (const stream of this.#streams) {
      const object = { metadata: { resourceVersion: String(this.#version), creationTimestamp: null } };
      write(stream, { type: 'BOOKMARK', object });
    }
    return String(this.#version);
  }

  /** Deletes the past events: a watch or continued list from before gets 410. */
  compact(): void {
    this.#version += 1;
    this.#compacted = this.#version;
    this.#pages.clear();
  }

  /** Sends an ERROR event to each watch and ends it. */
  error(status: { readonly code: number; readonly [field: string]: unknown }): void {
    for (const stream of this.#streams) {
      write(stream, { type: 'ERROR', object: { kind: 'Status', status: 'Failure', ...status } });
      this.#leave(stream).end();
    }
  }

  /** Sends an unchanged line to each watch. */
  raw(line: string): void {
    for (const { response } of this.#streams) response.write(line);
  }

  /** Ends each watch as a server does after its time limit. */
  end(): void {
    for (const stream of this.#streams) this.#leave(stream).end();
  }

  /** Breaks the connection of each watch in the middle of a line. */
  cut(): void {
    for (const stream of this.#streams) {
      const response = this.#leave(stream);
      response.write('{"type":"ADDED","object":{"metadata":{"resourceVersion":"99', () => response.destroy());
    }
  }

  /** Answers a read of one object with this object or this status. */
  single(path: string, answer: unknown): void {
    this.#single.set(path, answer);
  }

  /** Answers the next request of that verb with a fault. */
  misbehave(misdeed: Misdeed): void {
    this.#misdeeds.push(misdeed);
  }

  forgive(): void {
    this.#misdeeds.length = 0;
  }

  install(apiVersion: string, plural: string): void {
    this.#installed.set(apiVersion, plural);
  }

  uninstall(apiVersion: string): void {
    this.#installed.delete(apiVersion);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    const undone = this.#misdeeds.map(({ verb, status }) => `no ${verb} came for the ${status}`);
    const problems = [...this.#wrong, ...undone];
    if (problems.length > 0) throw new Error(`fake Kubernetes: ${problems.join('; ')}`);
  }

  /** Sends no later event there. */
  #leave(stream: Stream): ServerResponse {
    this.#streams.delete(stream);
    return stream.response;
  }

  #change(type: Change['type'], object: KubernetesObject): void {
    this.#version += 1;
    const metadata = { ...object.metadata, resourceVersion: String(this.#version) };
    const change = { version: this.#version, type, object: { ...object, metadata } };
    if (type === 'DELETED') this.#objects.delete(object.metadata.uid);
    else this.#objects.set(object.metadata.uid, change.object);
    this.#history.push(change);
    for (const stream of this.#streams) send(stream, change);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://kubernetes');
    const query = Object.fromEntries(url.searchParams);
    const verb = query.watch === undefined ? 'list' : 'watch';
    const { authorization } = request.headers;
    const { token } = this.#options;
    if (token !== undefined && authorization !== `Bearer ${token}`) {
      refuse(response, 401);
      return;
    }
    const [, discovered] = /^\/apis\/([^/]+\/[^/]+)$/.exec(url.pathname) ?? [];
    if (discovered !== undefined && url.search === '' && request.method === 'GET') {
      this.#discover(discovered, response);
      return;
    }
    if (SINGLE.test(url.pathname) && url.search === '') {
      this.taken.push({ verb: 'get', path: url.pathname, query, authorization });
      const answer = this.#single.get(url.pathname) ?? 404;
      if (typeof answer === 'number') refuse(response, answer);
      else response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
      return;
    }
    const match = /^\/apis\/([^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([a-z]+)$/.exec(url.pathname);
    const [, apiVersion = '', namespace] = match ?? [];
    const wrong = this.#problem(request, match !== null, verb, query);
    if (wrong !== undefined) {
      this.#wrong.push(`${request.method} ${request.url}: ${wrong}`);
      refuse(response, 400);
      return;
    }
    this.taken.push({ verb, path: url.pathname, query, authorization });
    const misdeed = this.#misdeeds.findIndex(
      (each) => each.verb === verb && (each.continued ?? false) === (query.continue !== undefined),
    );
    const [found] = misdeed === -1 ? [] : this.#misdeeds.splice(misdeed, 1);
    if (found?.cut) {
      response.destroy();
      return;
    }
    if (found?.silent) return;
    if (found !== undefined) {
      refuse(response, found.status, found.headers);
      return;
    }
    // A real server also hides from a forbidden client whether it is installed.
    if (this.#options.forbidden?.includes(apiVersion)) {
      refuse(response, 403);
      return;
    }
    if (this.#installed.get(apiVersion) !== match?.[3]) {
      refuse(response, 404);
      return;
    }
    if (verb === 'list') this.#list(apiVersion, namespace, query, response);
    else this.#watch({ path: url.pathname, response }, Number(query.resourceVersion));
  }

  #discover(apiVersion: string, response: ServerResponse): void {
    const plural = this.#installed.get(apiVersion);
    if (this.#options.forbidden?.includes('*')) refuse(response, 403);
    else if (plural === undefined) refuse(response, 404);
    else {
      const resources = [{ name: plural, namespaced: true, verbs: ['get', 'list', 'watch'] }];
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ kind: 'APIResourceList', groupVersion: apiVersion, resources }));
    }
  }

  #problem(
    request: IncomingMessage,
    known: boolean,
    verb: 'list' | 'watch',
    query: Readonly<Record<string, string>>,
  ): string | undefined {
    if (!known || request.method !== 'GET') return 'no such resource';
    const unknown = Object.keys(query).filter(
      (name) => !(verb === 'list' ? LIST_QUERY : WATCH_QUERY).includes(name),
    );
    if (unknown.length > 0) return `unknown parameters ${unknown.join(', ')}`;
    if (verb === 'list') return undefined;
    if (query.watch !== '1' && query.watch !== 'true') return 'watch is neither 1 nor true';
    if (!/^[1-9]\d*$/.test(query.resourceVersion ?? '')) return 'a watch from no version';
    if (query.allowWatchBookmarks !== 'true') return 'no bookmarks are asked for';
    if (!/^[1-9]\d*$/.test(query.timeoutSeconds ?? '')) return 'a watch without an end';
    return undefined;
  }

  #list(
    apiVersion: string,
    namespace: string | undefined,
    query: Readonly<Record<string, string>>,
    response: ServerResponse,
  ): void {
    const known = query.continue === undefined ? undefined : this.#pages.get(query.continue);
    if (query.continue !== undefined && known === undefined) {
      refuse(response, 410);
      return;
    }
    const version = known?.version ?? this.#version;
    const all =
      known?.rest ??
      [...this.#objects.values()].filter(
        (each) =>
          each.apiVersion === apiVersion &&
          (namespace ?? each.metadata.namespace) === each.metadata.namespace,
      );
    const limit = query.limit === undefined ? all.length : Number(query.limit);
    const rest = all.slice(limit);
    const next =
      rest.length === 0 ? '' : Buffer.from(`${version} ${rest[0]?.metadata.uid}`).toString('base64url');
    if (next !== '') this.#pages.set(next, { version, rest });
    const counted = rest.length === 0 ? {} : { remainingItemCount: rest.length };
    const metadata = { resourceVersion: String(version), continue: next, ...counted };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ apiVersion, kind: 'List', metadata, items: all.slice(0, limit) }));
  }

  #watch(stream: Stream, from: number): void {
    if (from < this.#compacted) {
      refuse(stream.response, 410);
      return;
    }
    stream.response.writeHead(200, { 'content-type': 'application/json' });
    stream.response.flushHeaders();
    for (const change of this.#history) if (change.version > from) send(stream, change);
    this.#streams.add(stream);
    stream.response.once('close', () => this.#streams.delete(stream));
  }
}

function send(stream: Stream, { type, object }: Change): void {
  const { namespace } = object.metadata;
  const whole = stream.path.includes('/namespaces/');
  if (!stream.path.startsWith(`/apis/${object.apiVersion}/`)) return;
  if (whole && !stream.path.includes(`/namespaces/${namespace}/`)) return;
  write(stream, { type, object });
}

function write({ response }: Stream, event: unknown): void {
  response.write(`${JSON.stringify(event)}\n`);
}

function refuse(
  response: ServerResponse,
  code: number,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(code, { ...headers, 'content-type': 'application/json' });
  response.end(JSON.stringify({ kind: 'Status', status: 'Failure', code }));
}
