import type { SourceSetting } from '../../domain/source.ts';
import { environmentKey } from '../../sources/schema/options.ts';

export interface FailedSource {
  readonly id: string;
  readonly settings: readonly SourceSetting[];
  readonly lacksCredentials: boolean;
}

/** Fixes by the text of a `SourceError`; the first match counts. */
const REMEDIES: readonly (readonly [error: RegExp, remedy: (source: FailedSource) => string])[] = [
  [/proxy/i, () => 'correct HTTP_PROXY, HTTPS_PROXY and NO_PROXY where the worker runs'],
  [
    /certificate|does not speak TLS/,
    (source) =>
      `check the address (${addressOf(source)}) and its certificate; NODE_EXTRA_CA_CERTS names the file of an own authority`,
  ],
  [/answers (404|410)\b/, (source) => `correct the address: it is ${addressOf(source)}`],
  [
    /cannot be reached/,
    (source) => `check that the address is right and can be reached: it is ${addressOf(source)}`,
  ],
  [
    /answers (401|403)\b|\b(no|another) token\b|credentials|tokenCommand|_TOKEN_COMMAND|keyFile/i,
    (source) =>
      source.lacksCredentials
        ? `give it credentials: set ${credentialsOf(source)}`
        : `give it a valid token that may read: correct ${credentialsOf(source)}`,
  ],
  [/exchange rate/, () => 'set CATALOGUE_RATES, or make EXCHANGE_RATES_URL reachable'],
  [
    /answers (408|425|429|5\d\d)\b|no whole answer|ends too early/,
    () => 'wait: the worker retries by itself. If it lasts, contact the provider',
  ],
];

const run = ({ id }: FailedSource): string => `fleetbook sync ${id}`;

export function failureRemedy(error: string | null, source: FailedSource): string {
  if (error === null) return `run it again: ${run(source)}`;
  const [, known] = REMEDIES.find(([each]) => each.test(error)) ?? [];
  const remedy =
    known?.(source) ??
    `check the address: it is ${addressOf(source)}. If it is right, the provider has changed its answers: update Fleetbook, or report it`;
  return `${remedy}. Then run: ${run(source)}`;
}

/** Returns e.g. `https://x, from HETZNER_URL`. */
function addressOf({ id, settings }: FailedSource): string {
  const url = settings.find(({ name }) => name === 'url');
  const value = url?.value ?? 'not set';
  if (url?.from === 'environment') return `${value}, from ${url.variable}`;
  if (url?.from === 'file') return `${value}, the url of "${id}" in ${url.file}`;
  const file = settings.find((each) => each.from === 'file');
  const where = file?.from === 'file' ? `url of "${id}" in ${file.file}` : environmentKey(id, 'url');
  return `${value}, the default; ${where} changes it`;
}

function credentialsOf({ id, settings }: FailedSource): string {
  const given = settings.find(({ name }) => /^(token|tokenCommand|credentials)/.test(name));
  if (given?.from === 'environment') return given.variable;
  const file = settings.find((each) => each.from === 'file');
  return file?.from === 'file' ? `tokenEnv of "${id}" in ${file.file}` : environmentKey(id, 'token');
}
