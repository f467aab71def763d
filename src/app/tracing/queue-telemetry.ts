/** What BullMQ tells, but for its housekeeping. */
import { INVALID_SPAN_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import type { Telemetry } from 'bullmq';
import { BullMQOTelSpan, BullMQOtel } from 'bullmq-otel';

/** A consumer that looks for a job every few seconds would begin a trace each time: that is told within one alone. */
export function queueTelemetry(): Telemetry {
  const telemetry = new BullMQOtel({ tracerName: 'bullmq' });
  const { tracer } = telemetry;
  const start = tracer.startSpan.bind(tracer);
  tracer.startSpan = (name, options: { kind?: SpanKind } = {}, parent) => {
    const isHousekeeping = options.kind === SpanKind.INTERNAL && !trace.getActiveSpan()?.isRecording();
    return isHousekeeping
      ? new BullMQOTelSpan(trace.wrapSpanContext(INVALID_SPAN_CONTEXT))
      : start(name, options, parent);
  };
  return telemetry as Telemetry;
}
