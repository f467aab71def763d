/**
 * Spans of what goes out: to Redis, to PostgreSQL, to upstreams. Each is told only as part of a trace. Neither keys nor
 * parameters nor addresses are: they may name organizations and hold tokens.
 */
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { type Attributes, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import postgres from 'postgres';

/** Stops telling. */
type Stop = () => void;

/** Characters of a statement that are told. */
const STATEMENT_LENGTH = 2000;

/** A span below the active one; undefined where there is none. */
function below(tracer: Tracer, name: string, attributes: Attributes): Span | undefined {
  if (!trace.getActiveSpan()?.isRecording()) return undefined;
  return tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes });
}

function endFailed(span: Span, error: unknown): void {
  span.setStatus({ code: SpanStatusCode.ERROR });
  if (error instanceof Error) {
    const { code } = error as NodeJS.ErrnoException;
    span.setAttribute('error.type', code ?? error.name);
  }
  span.end();
}

/** By what the client publishes of itself. */
interface RedisCommand {
  readonly command?: string;
  readonly serverAddress: string;
  readonly serverPort: number | undefined;
}

export function traceRedis(tracer: Tracer): Stop {
  const stops = ['ioredis:command', 'ioredis:batch'].map((name) => {
    const channel = tracingChannel<RedisCommand>(name);
    const spans = new WeakMap<object, Span>();
    const handlers = {
      start(sent: object) {
        const { command, serverAddress, serverPort } = sent as RedisCommand;
        const operation = (command ?? 'MULTI').toUpperCase();
        const span = below(tracer, operation, {
          'db.system.name': 'redis',
          'db.operation.name': operation,
          'server.address': serverAddress,
          ...(serverPort !== undefined && { 'server.port': serverPort }),
        });
        if (span) spans.set(sent, span);
      },
      end() {},
      asyncStart() {},
      asyncEnd(sent: object & { error?: unknown }) {
        const span = spans.get(sent);
        if (span === undefined) return;
        spans.delete(sent);
        if (sent.error === undefined) span.end();
        else endFailed(span, sent.error);
      },
      error() {},
    };
    channel.subscribe(handlers);
    return () => channel.unsubscribe(handlers);
  });
  return () => {
    for (const stop of stops) stop();
  };
}

/** What is used here of a statement of postgres.js. */
interface Statement {
  executed: boolean;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
  /** The text as it was sent, with $1 for a parameter; known once it was. */
  readonly string?: string;
  readonly strings: readonly string[];
}

/**
 * postgres.js publishes nothing of itself, and each client makes statements of the same class: its method `handle`, by
 * which a statement begins, is replaced for as long as tracing is on.
 */
export function tracePostgres(tracer: Tracer): Stop {
  const never = postgres({ max: 1 });
  const prototype = Object.getPrototypeOf(never`select`) as {
    handle: (this: Statement) => Promise<unknown>;
  };
  const { handle } = prototype;
  prototype.handle = function (this: Statement) {
    if (!this.executed) watch(tracer, this);
    return Reflect.apply(handle, this, []);
  };
  return () => {
    prototype.handle = handle;
  };
}

function watch(tracer: Tracer, statement: Statement): void {
  const verb = /^\s*(\w+)/.exec(statement.strings[0] ?? '')?.[1]?.toUpperCase() ?? 'SQL';
  const span = below(tracer, verb, { 'db.system.name': 'postgresql', 'db.operation.name': verb });
  if (span === undefined) return;
  const { resolve, reject } = statement;
  const say = () => {
    const text = (statement.string ?? statement.strings.join('?')).replaceAll(/\s+/g, ' ').trim();
    span.setAttribute('db.query.text', text.slice(0, STATEMENT_LENGTH));
  };
  statement.resolve = (value) => {
    say();
    span.end();
    resolve(value);
  };
  statement.reject = (error) => {
    say();
    endFailed(span, error);
    reject(error);
  };
}

interface Asked {
  readonly request: ClientRequest;
  readonly response?: IncomingMessage;
  readonly error?: Error;
}

/** By what Node publishes of its client: requests to sources, and for their tokens. No header of ours goes to them. */
export function traceHttpClient(tracer: Tracer): Stop {
  const spans = new WeakMap<ClientRequest, Span>();
  const onCreated = (message: unknown) => {
    const { request } = message as Asked;
    const span = below(tracer, request.method, {
      'http.request.method': request.method,
      'server.address': request.host,
    });
    if (span) spans.set(request, span);
  };
  const take = (request: ClientRequest) => {
    const span = spans.get(request);
    spans.delete(request);
    return span;
  };
  const onFinish = (message: unknown) => {
    const { request, response } = message as Asked;
    const span = take(request);
    if (span === undefined) return;
    const status = response?.statusCode ?? 0;
    span.setAttribute('http.response.status_code', status);
    if (status >= 400) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  };
  const onError = (message: unknown) => {
    const { request, error } = message as Asked;
    const span = take(request);
    if (span) endFailed(span, error);
  };
  const heard = [
    ['http.client.request.created', onCreated],
    ['http.client.response.finish', onFinish],
    ['http.client.request.error', onError],
  ] as const;
  for (const [name, listener] of heard) subscribe(name, listener);
  return () => {
    for (const [name, listener] of heard) unsubscribe(name, listener);
  };
}
