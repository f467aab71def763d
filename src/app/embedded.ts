/** A reader as a plugin of another Fastify application. See docs/embedding.md. */
import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance, FastifyPluginAsync, RouteShorthandOptions } from 'fastify';
import { type Logger, pino } from 'pino';
import { VERSION } from '../config/package.ts';
import { buildApp } from '../http/app.ts';
import type { Readiness } from '../http/routes/health.ts';
import { type ReaderOptions, settingsOf } from './embedded-options.ts';
import { apiOptions, composeReader } from './reader.ts';

export interface EmbeddedReader extends AsyncDisposable {
  /**
   * Register it once. With a prefix, the reader answers every path below it. Without one, it answers `/v1` and the description
   * of the API, and the host answers all other paths.
   */
  readonly plugin: FastifyPluginAsync;
  /** Returns the result of `/readyz`: whether it can answer, and each check by name. It never fails. */
  readiness(): Promise<Readiness>;
  /**
   * Resolves when the reader can answer. Earlier requests are answered too, with 503 if no data is there.
   * @param withinMs milliseconds, 10 000 by default
   * @throws Error after that time; it names the failed checks
   */
  ready(withinMs?: number): Promise<void>;
  close(): Promise<void>;
}

const OWN_PATHS = ['/v1', '/v1/*', '/openapi.json'];
const DOCS_PATHS = ['/docs', '/docs/*', '/llms.txt'];

const CHECK_EVERY_MS = 50;

/**
 * Opens a reader for a host. PostgreSQL and Redis may start later: it connects then.
 * @throws TypeError that names each missing, unknown or wrong option
 */
export function createReader(options: ReaderOptions): EmbeddedReader {
  const settings = settingsOf(options);
  const logger = options.logger ? (options.logger as unknown as Logger) : pino({ level: 'silent' });
  const opening = composeReader({ settings }, logger);
  opening.catch((error: unknown) => logger.error({ err: error }, 'the reader could not be opened'));
  let closed: Promise<void> | undefined;
  let isRegistered = false;

  const readiness = async (): Promise<Readiness> =>
    closed === undefined ? (await opening).readiness() : { ready: false, checks: { reader: 'closed' } };

  async function ready(withinMs = 10_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      const { ready: isReady, checks } = await readiness();
      if (isReady) return;
      if (closed !== undefined) throw new Error('the reader is closed');
      if (performance.now() > deadline) {
        const missing = Object.entries(checks).filter(([, found]) => found !== 'ok');
        throw new Error(
          `the reader is not ready after ${withinMs} ms: ${missing.map((check) => check.join(' ')).join(', ')}`,
        );
      }
      await pause(CHECK_EVERY_MS);
    }
  }

  async function close(): Promise<void> {
    closed ??= opening.then((reader) => reader[Symbol.asyncDispose]());
    await closed;
  }

  const plugin: FastifyPluginAsync = async (host) => {
    if (isRegistered)
      throw new Error('this reader is already registered; create another reader for another place');
    isRegistered = true;
    const reader = await opening;
    const app = buildApp({
      ...reader,
      readiness,
      logger: options.logger ? logger : false,
      version: VERSION,
      basePath: host.prefix,
      ...apiOptions({ ...settings, MAX_CONNECTIONS: 0 }),
    });
    await app.ready();
    // The host must not start without a part of the API.
    await app.loadRoutes();
    forward(host, app, settings.API_DOCS === 'on' ? [...OWN_PATHS, ...DOCS_PATHS] : OWN_PATHS);
    let closing: Promise<unknown> | undefined;
    // Its answers tell clients to close their connections from now on.
    host.addHook('preClose', async () => {
      closing = app.close();
    });
    host.addHook('onClose', async () => {
      await (closing ?? app.close());
      await close();
    });
  };

  return { plugin, readiness, ready, close, [Symbol.asyncDispose]: close };
}

/**
 * Passes requests to the reader before the host reads their bodies. No later hook, parser or error handler of the host changes
 * an answer. The host's `onRequest` hooks run first, and may reject a request.
 * @param ownPaths paths of a reader without a prefix
 */
function forward(host: FastifyInstance, app: FastifyInstance, ownPaths: readonly string[]): void {
  const { prefix } = host;
  const onRequest: RouteShorthandOptions['onRequest'] = (request, reply) => {
    reply.hijack();
    const { raw } = request;
    raw.url = targetBelow(prefix, raw.url ?? '/');
    joinDuplicates(raw);
    app.server.emit('request', raw, reply.raw);
  };
  const method = host.supportedMethods;
  for (const url of prefix === '' ? ownPaths : ['', '/*'])
    host.route({ method, url, exposeHeadRoute: false, onRequest, handler: (_, reply) => reply });
}

/** Removes the prefix. The host has matched it: another spelling of it has as many segments. */
function targetBelow(prefix: string, target: string): string {
  if (prefix === '') return target;
  const rest = target.startsWith(prefix)
    ? target.slice(prefix.length)
    : target.replace(new RegExp(`^(?:/[^/?#]*){${prefix.split('/').length - 1}}`), '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Node joins duplicates of these for `serve`. Two credentials must not look like the first alone. */
const JOINED = ['authorization', 'host'] as const;

function joinDuplicates({ headers, rawHeaders }: IncomingMessage): void {
  for (const name of JOINED) {
    const values: string[] = [];
    for (let i = 0; i + 1 < rawHeaders.length; i += 2)
      if (rawHeaders[i]?.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? '');
    if (values.length > 1) headers[name] = values.join(', ');
  }
}
