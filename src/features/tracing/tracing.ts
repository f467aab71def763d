/** Traces for OpenTelemetry. Its packages are loaded only if the environment names a collector: docs/decisions/0084. */
import { BadSetting } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import type { Tracing } from './start-opentelemetry.ts';

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;

/**
 * Starts tracing before anything else of a process. Undefined without a collector in OTEL_EXPORTER_OTLP_ENDPOINT. OpenTelemetry
 * reads other settings.
 */
export async function openTracing(
  env: Environment,
  program: 'serve' | 'work' | 'sync',
): Promise<Tracing | undefined> {
  const endpoint = ENDPOINTS.find((name) => env[name]);
  if (endpoint === undefined || env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return undefined;
  const address = env[endpoint] ?? '';
  if (!URL.canParse(address) || !/^https?:/.test(address))
    throw new BadSetting(
      `${endpoint} must be a URL that starts with http:// or https://; it is ${JSON.stringify(address)}`,
    );
  const protocol = PROTOCOLS.find((name) => env[name]);
  if (protocol !== undefined && env[protocol] === 'grpc')
    throw new BadSetting(
      `${protocol} must be http/json, or left out; it is "grpc". A collector takes that on its HTTP port, usually 4318`,
    );
  const { startTracing } = await import('./start-opentelemetry.ts');
  return startTracing(`fleetbook-${program}`);
}
