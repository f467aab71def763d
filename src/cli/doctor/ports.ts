import { API, type Listener, listenFailure, OPS, reachableHost } from '../../app/processes/listen.ts';
import type { Configured, Settings } from '../../config/settings.ts';
import { probePort } from '../../processes/port.ts';
import { type Finding, ok, problem, problemOf, warning } from './finding.ts';

const ANSWER_WITHIN_MS = 2000;

/** Checks that the API and the operators' pages can listen, or already do. */
export async function checkPorts({ settings }: Configured): Promise<Finding[]> {
  const { PORT, OPS_PORT, HOST, OPS_HOST } = settings;
  if (PORT !== 0 && PORT === OPS_PORT && HOST === OPS_HOST) {
    return [problem('ports', `PORT and OPS_PORT are both ${PORT}`, 'give OPS_PORT another one')];
  }
  const found = await Promise.all([
    checkPort('port of the API', settings, API),
    checkPort('port of the operators’ pages', settings, OPS),
  ]);
  if (await areOpsClosed(settings)) {
    const fix =
      'set OPS_TOKEN, e.g. to the output of `openssl rand -base64 32`, and restart `fleetbook serve`';
    found.push(warning('operators’ pages', 'they are closed: OPS_TOKEN is not set', fix));
  }
  return found;
}

async function checkPort(check: string, settings: Settings, listener: Listener): Promise<Finding> {
  const host = settings[listener.host];
  const port = settings[listener.port];
  const where = `${host}:${port}`;
  if (port === 0) return ok(check, 'any that is free');
  try {
    await probePort(host, port);
    return ok(check, `${where} is free`);
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    if (isTaken && (await isFleetbook(settings, listener))) return ok(check, `Fleetbook answers at ${where}`);
    const failure = listenFailure(error, port, listener);
    return problemOf(check, failure instanceof Error ? failure.message : String(failure));
  }
}

/** Both listeners answer this path without a token. */
async function isFleetbook(settings: Settings, listener: Listener): Promise<boolean> {
  const answer = await request(settings, listener, '/healthz');
  return answer?.body === '{"status":"ok"}';
}

/** Requests a page of the running process; if none runs, uses the settings. */
async function areOpsClosed(settings: Settings): Promise<boolean> {
  const isShown = settings.OPS_PORT !== 0 && (await isFleetbook(settings, OPS));
  if (!isShown) return settings.OPS_TOKEN === undefined;
  // With OPS_TOKEN the answer is 401.
  return (await request(settings, OPS, '/metrics'))?.status === 403;
}

async function request(settings: Settings, listener: Listener, path: string) {
  const url = `http://${reachableHost(settings[listener.host])}:${settings[listener.port]}${path}`;
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS), redirect: 'error' });
    return { status: answer.status, body: await answer.text() };
  } catch {
    return undefined;
  }
}
