/** Sends traces by OTLP over HTTP, as JSON. Loaded only when tracing is configured. */
import {
  type Context,
  context,
  INVALID_SPAN_CONTEXT,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import type { Telemetry } from 'bullmq';
import { BullMQOTelSpan, BullMQOtel } from 'bullmq-otel';
import type { FastifyInstance } from 'fastify';
import { addLogSource } from '../../app/log-context.ts';
import { VERSION } from '../../config/package.ts';
import { withTimeout } from '../../domain/clock.ts';
import { type SpanAttributes, type Tracer as SpanTracer, setTracer } from '../../domain/tracer.ts';

const HEALTH_PATHS = ['/healthz', '/readyz'];
/** The last spans are lost after this time (ms): a collector that is away must not delay the end of a process. */
const SEND_WITHIN_MS = 3000;

export interface Tracing extends AsyncDisposable {
  /** For the queue of syncs and its consumer. */
  readonly telemetry: Telemetry;
  /** Adds a span for each request that Fastify routes. Call it before the server listens. */
  readonly traceRequests: (app: FastifyInstance) => void;
}

export function startTracing(service: string): Tracing {
  const own = resourceFromAttributes({ 'service.name': service, 'service.version': VERSION });
  const provider = new NodeTracerProvider({
    resource: own.merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  const tracer = provider.getTracer('fleetbook', VERSION);
  setTracer(spansOf(tracer));
  const removeLogSource = addLogSource(logFields);
  return {
    telemetry: queueTelemetry(),
    traceRequests: (app) => traceRequests(app, tracer),
    async [Symbol.asyncDispose]() {
      setTracer(undefined);
      removeLogSource();
      await withTimeout(SEND_WITHIN_MS, provider.shutdown()).catch(() => false);
      trace.disable();
      context.disable();
      propagation.disable();
    },
  };
}

function logFields(): Record<string, string> {
  const active = trace.getActiveSpan()?.spanContext();
  return active && trace.isSpanContextValid(active)
    ? { trace_id: active.traceId, span_id: active.spanId }
    : {};
}

/** Begins a trace for each request, or continues the caller's. The route is a pattern: a path may hold names. */
function traceRequests(app: FastifyInstance, tracer: Tracer): void {
  app.addHook('onRequest', (request, { raw }, done) => {
    const { method, id, headers } = request;
    const { url: route } = request.routeOptions;
    if (route !== undefined && HEALTH_PATHS.includes(route)) {
      done();
      return;
    }
    const parent = propagation.extract(ROOT_CONTEXT, headers);
    const attributes = {
      'http.request.method': method,
      'fleetbook.request_id': id,
      ...(route !== undefined && { 'http.route': route }),
    };
    const name = route === undefined ? method : `${method} ${route}`;
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
    raw.once('close', () => {
      if (raw.headersSent) span.setAttribute('http.response.status_code', raw.statusCode);
      if (raw.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    });
    context.with(trace.setSpan(parent, span), done);
  });
}

/** Records `traced` work within a trace. A run also begins one: a command or a watch has no job. */
function spansOf(tracer: Tracer): SpanTracer {
  return (name, attributes, work) => {
    const parent = context.active();
    if (name !== 'run' && !trace.getSpan(parent)?.isRecording()) return work(() => {});
    const span = tracer.startSpan(name, { kind: kindOf(attributes), attributes }, parent);
    return endingWith(span, trace.setSpan(parent, span), () => work((more) => void span.setAttributes(more)));
  };
}

/** Work for which this process waits for a server is the span of a client. */
function kindOf(attributes: SpanAttributes): SpanKind {
  const isCall = 'db.system.name' in attributes || 'http.request.method' in attributes;
  return isCall ? SpanKind.CLIENT : SpanKind.INTERNAL;
}

function endingWith<T>(span: Span, active: Context, work: () => T): T {
  const failed = (error: unknown) => {
    // The log has the message. It may hold parameters, which no collector may store.
    span.setStatus({ code: SpanStatusCode.ERROR });
    if (error instanceof Error) span.setAttribute('error.type', error.name);
    span.end();
  };
  try {
    const result = context.with(active, work);
    if (result instanceof Promise) result.then(() => span.end(), failed);
    else span.end();
    return result;
  } catch (error) {
    failed(error);
    throw error;
  }
}

/**
 * The spans of BullMQ. A consumer polls for jobs every few seconds, and BullMQ begins a trace for each poll. Only polls
 * within a trace are recorded.
 */
function queueTelemetry(): Telemetry {
  const { tracer, contextManager } = new BullMQOtel({ tracerName: 'bullmq' });
  return {
    contextManager,
    tracer: {
      startSpan(name, options, parent) {
        const isPoll = options?.kind === SpanKind.INTERNAL && !trace.getActiveSpan()?.isRecording();
        return isPoll
          ? new BullMQOTelSpan(trace.wrapSpanContext(INVALID_SPAN_CONTEXT))
          : tracer.startSpan(name, options, parent);
      },
    },
  };
}
