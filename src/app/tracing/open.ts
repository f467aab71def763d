/** OpenTelemetry, where it is configured. Nothing of it is loaded otherwise: see docs/decisions. */
import { BadSetting } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import type { Tracing } from './tracing.ts';

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;

/**
 * Starts to send traces where OTEL_EXPORTER_OTLP_ENDPOINT says where to. The other settings are OpenTelemetry's own,
 * and read by its packages: service name, headers, sampling.
 * @param program what the service is called unless OTEL_SERVICE_NAME says it
 * @returns undefined where it is not configured, or OTEL_SDK_DISABLED is `true`
 * @throws BadSetting when it is configured for another protocol, or the address is none
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
      `${protocol} must be http/json, or left out; it is "grpc". A collector takes that on its HTTP port, as a rule 4318`,
    );
  const { startTracing } = await import('./start.ts');
  return startTracing(`fleetbook-${program}`);
}
