/** Sends traces by OTLP over HTTP, as JSON. Loaded only where tracing is configured. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import {
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import type { FastifyInstance } from 'fastify';
import { VERSION } from '../../config/package.ts';
import { setTracer, type Tracer } from '../../db/traced.ts';
import { addLogSource } from '../log-context.ts';
import { traceHttpClient, tracePostgres, traceRedis } from './instruments.ts';
import { queueTelemetry } from './queue-telemetry.ts';
import type { Tracing } from './tracing.ts';

/** Whoever looks after the process asks for these every few seconds. */
const QUIET = /^\/(?:healthz|readyz)(?:\?|$)/;
/** What is not sent by then is lost: a collector that is away must not keep a process from ending. */
const SEND_WITHIN_MS = 3000;

export function startTracing(service: string): Tracing {
  const own = resourceFromAttributes({ 'service.name': service, 'service.version': VERSION });
  const provider = new NodeTracerProvider({
    resource: own.merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  const tracer = provider.getTracer('fleetbook', VERSION);
  setTracer(tracerOn((name, parent) => tracer.startSpan(name, {}, parent)));
  const stops = [traceRedis(tracer), tracePostgres(tracer), traceHttpClient(tracer)];
  stops.push(
    addLogSource(() => {
      const active = trace.getActiveSpan()?.spanContext();
      return active && trace.isSpanContextValid(active)
        ? { trace_id: active.traceId, span_id: active.spanId }
        : {};
    }),
  );

  function traceRequests(app: FastifyInstance): void {
    const listeners = app.server.listeners('request') as RequestListener[];
    app.server.removeAllListeners('request');
    app.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const answer = () => {
        for (const listener of listeners) Reflect.apply(listener, app.server, [request, response]);
      };
      if (QUIET.test(request.url ?? '')) {
        answer();
        return;
      }
      const parent = propagation.extract(ROOT_CONTEXT, request.headers);
      const method = request.method ?? '';
      const options = { kind: SpanKind.SERVER, attributes: { 'http.request.method': method } };
      const span = tracer.startSpan(method, options, parent);
      response.once('close', () => {
        span.setAttribute('http.response.status_code', response.statusCode);
        if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      });
      context.with(trace.setSpan(parent, span), answer);
    });
    app.addHook('onRequest', (request, _, done) => {
      const span = trace.getActiveSpan()?.setAttribute('fleetbook.request_id', request.id);
      const { url: route } = request.routeOptions;
      // A pattern, never a path.
      if (route !== undefined)
        span?.updateName(`${request.method} ${route}`).setAttribute('http.route', route);
      done();
    });
  }

  return {
    telemetry: queueTelemetry(),
    traceRequests,
    async [Symbol.asyncDispose]() {
      setTracer(undefined);
      for (const stop of stops) stop();
      const late = AbortSignal.timeout(SEND_WITHIN_MS);
      const sent = provider.shutdown().catch(() => {});
      await Promise.race([sent, new Promise((resolve) => late.addEventListener('abort', resolve))]);
      trace.disable();
      context.disable();
      propagation.disable();
    },
  };
}

/** Runs are traces of their own where nothing has begun one. All else is told only as part of one. */
function tracerOn(start: (name: string, parent: Context) => Span): Tracer {
  return (name, attributes, work) => {
    const parent = context.active();
    if (name !== 'run' && !trace.getSpan(parent)?.isRecording()) return work(() => {});
    const span = start(name, parent).setAttributes(attributes);
    const failed = (error: unknown) => {
      // The message stays in the log: it may hold what a trace is not to have.
      span.setStatus({ code: SpanStatusCode.ERROR });
      if (error instanceof Error) span.setAttribute('error.type', error.name);
      span.end();
    };
    try {
      const result = context.with(trace.setSpan(parent, span), () =>
        work((more) => void span.setAttributes(more)),
      );
      if (result instanceof Promise)
        result.then(
          () => span.end(),
          (error: unknown) => failed(error),
        );
      else span.end();
      return result;
    } catch (error) {
      failed(error);
      throw error;
    }
  };
}
