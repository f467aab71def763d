import { buildApp } from '../api/app.ts';
import { Closing } from '../closing.ts';
import { composeReadTier } from '../compose.ts';
import { type Environment, readConfig } from '../config.ts';
import { reportReady } from '../local/parent.ts';
import { openLogger } from '../log.ts';
import { apiMetrics } from '../ops/metrics.ts';
import { VERSION } from '../package.ts';
import { CommandFailure } from './failure.ts';
import { offerOps } from './ops.ts';
import { stopSignal } from './stop-signal.ts';

export async function serve(env: Environment): Promise<void> {
  const stop = stopSignal();
  const config = readConfig(env);
  const { settings } = config;
  const logger = openLogger(settings, 'serve');
  await using closing = new Closing();
  const tier = closing.use(composeReadTier(config, logger));
  const metrics = apiMetrics();
  const app = await buildApp({
    catalogue: tier.catalogue,
    clusters: tier.clusters,
    tokens: tier.tokens,
    readiness: tier.readiness,
    logger,
    version: VERSION,
    trustProxy: settings.TRUST_PROXY,
    observe: metrics.observe,
  });
  closing.defer(() => app.close());
  await offerOps(config, metrics.registry, [], closing, logger);
  try {
    await app.listen({ host: settings.HOST, port: settings.PORT });
  } catch (error) {
    throw listenFailure(error, settings.PORT);
  }
  const address = app.server.address();
  const port = typeof address === 'object' && address ? address.port : settings.PORT;
  reportReady({ port });
  logger.info({ host: settings.HOST, port }, 'serving');
  logger.info({ why: await stop }, 'serving stops');
}

function listenFailure(error: unknown, port: number): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    return new CommandFailure(`port ${port} is taken by another program; stop it, or choose another in PORT`);
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new CommandFailure('HOST is no address of this machine; use 127.0.0.1, or 0.0.0.0 for all');
  }
  return error;
}
