import { INVALID_SPAN_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import type { Telemetry } from 'bullmq';
import { BullMQOTelSpan, BullMQOtel } from 'bullmq-otel';

/**
 * The spans of BullMQ. A consumer polls for jobs every few seconds, and BullMQ begins a trace for each poll. Only polls
 * within a trace are recorded.
 */
export function queueTelemetry(): Telemetry {
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
