/** Well-formed requests, valid and invalid, generated from the API's description. */
import fc from 'fast-check';
import { pick } from './budget.ts';
import type { FuzzWorld, Key, OperationDoc } from './world.ts';

export interface FuzzRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly key: Key;
  /** The requested operation, if any. */
  readonly operation: OperationDoc | undefined;
}

const METHODS = ['GET', 'GET', 'GET', 'GET', 'GET', 'GET', 'HEAD', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH'];
const RARE_METHODS = ['OPTIONS', 'TRACE', 'QUERY', 'PROPFIND', 'LOCK', 'SEARCH', 'MKCOL', 'REPORT'];

/** Text of a target: percent-encoded, sometimes wrongly. */
const encodedText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 30 }).map(encode),
  fc
    .uint8Array({ maxLength: 12 })
    .map((bytes) => [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')),
  fc.constantFrom(
    '%',
    '%2',
    '%zz',
    '%00',
    '%2f..%2f',
    '..',
    '.',
    '%c0%af',
    '%ed%a0%80',
    '__proto__',
    'constructor',
    '*',
  ),
  fc.integer({ min: 1000, max: 9000 }).map((length) => 'x'.repeat(length)),
);
const integers = fc.oneof(
  fc.constantFrom(
    '0',
    '-1',
    '+1',
    '01',
    '1e1',
    '0x10',
    '1.0',
    '%201',
    '2147483647',
    '2147483648',
    '9007199254740993',
    'NaN',
    'null',
    '%31',
    '%EF%BC%91',
    '',
  ),
  fc.nat().map(String),
  fc.bigInt().map(String),
);
const values = fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, integers, encodedText);

const headerText = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 40,
});
const noise = {
  accept: fc.oneof(
    fc.constantFrom(
      '*/*',
      'application/json',
      'text/html',
      'application/*;q=0',
      'application/json;q=0.1, text/*',
      ';;,',
      '',
    ),
    headerText,
  ),
  'accept-encoding': fc.oneof(
    fc.constantFrom(
      'gzip',
      'br',
      'identity',
      'gzip, br',
      '*;q=0',
      'identity;q=0',
      'br;q=0.001',
      'deflate',
      '',
    ),
    headerText,
  ),
  // Only the first one gets 304.
  'if-none-match': fc.oneof(
    { weight: 4, arbitrary: fc.constant('*') },
    fc.constantFrom('W/"a"', '"a", "b"', '"', '""'),
    headerText,
  ),
  'if-modified-since': headerText,
  range: fc.constantFrom('bytes=0-1', 'bytes=-1', 'x'),
  'x-request-id': fc.oneof(fc.constantFrom('a', 'a b', 'x'.repeat(200)), headerText),
  'x-forwarded-for': headerText,
  'content-type': fc.oneof(
    fc.constantFrom('application/json', 'text/plain', 'multipart/form-data', 'x'),
    headerText,
  ),
  cookie: headerText,
  upgrade: fc.constantFrom('h2c', 'websocket', 'HTTP/3.0'),
  'http2-settings': fc.constant('AAMAAABkAAQAoAAAAAIAAAAA'),
  te: fc.constantFrom('trailers', 'gzip'),
  forwarded: headerText,
  origin: headerText,
  'x-http-method-override': fc.constantFrom('DELETE', 'PUT'),
} as const;

const plans = fc.record({
  operation: fc.nat(),
  key: fc.nat({ max: 1000 }),
  scheme: fc.constantFrom(
    'Bearer ',
    'Bearer ',
    'Bearer ',
    'Bearer ',
    'bearer ',
    'Basic ',
    'Bearer',
    ' Bearer  ',
    '',
  ),
  method: fc.oneof({ weight: 12, arbitrary: fc.constantFrom(...METHODS) }, fc.constantFrom(...RARE_METHODS)),
  values: fc.array(values, { minLength: 3, maxLength: 3 }),
  known: fc.nat(),
  query: fc.oneof(
    { weight: 6, arbitrary: fc.constant('') },
    encodedText,
    fc.constantFrom('provider=1', 'region=1&region=2', '&&&', '=', '?', '__proto__[x]=1', '#'),
  ),
  path: fc.oneof({ weight: 12, arbitrary: fc.constant(undefined) }, encodedText),
  tail: fc.constantFrom('', '', '', '', '', '', '', '/', '//', '/.', ';a=b', '%20', '/extra'),
  absolute: fc.constantFrom('', '', '', '', '', '', '', 'http://a', 'HTTP://other:99', 'https://[::1]'),
  headers: fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, fc.record(noise, { requiredKeys: [] })),
  body: fc.oneof(
    { weight: 5, arbitrary: fc.constant('') },
    fc.json({ maxDepth: 2 }),
    fc.constantFrom('{', '\0', '{"__proto__":{"a":1}}'),
  ),
});

/** Returns one request of the world. */
export function requestsOf(world: FuzzWorld): fc.Arbitrary<FuzzRequest> {
  return plans.map((plan) => {
    const operation = pick(world.operations, plan.operation);
    const key = pick(world.keys, plan.key);
    const path = plan.path === undefined ? operation.path : `/${plan.path}`;
    let target = path;
    const query: string[] = [];
    operation.parameters.forEach((parameter, index) => {
      const known = parameter.schema.type === 'integer' ? world.ids : world.slugs;
      const value = plan.values[index] ?? encode(String(pick<string | number>(known, plan.known + index)));
      if (parameter.in === 'query') query.push(`${parameter.name}=${value}`);
      else target = target.replace(`{${parameter.name}}`, () => value);
    });
    if (plan.query !== '') query.push(plan.query);
    target = `${plan.absolute}${target.replaceAll(/[{}]/g, '')}${plan.tail}${query.length > 0 ? `?${query.join('&')}` : ''}`;
    const headers: Record<string, string> = { ...plan.headers };
    if (plan.scheme !== '') headers.authorization = `${plan.scheme}${key.token}`;
    const isPlain =
      plan.path === undefined &&
      plan.tail === '' &&
      plan.absolute === '' &&
      plan.values.every((value) => value === undefined);
    return {
      method: plan.method,
      target,
      headers,
      body: plan.body,
      key,
      operation: isPlain ? operation : undefined,
    };
  });
}

/** Like `encodeURIComponent`, but encodes half a surrogate pair as UTF-8 does. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** A request as sent. */
export function bytesOf({ method, target, headers, body }: FuzzRequest, connection: string): Buffer {
  const lines = Object.entries({ host: 'a', ...headers, connection }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const length = body === '' ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`;
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}${length}\r\n`, 'latin1');
  return Buffer.concat([head, Buffer.from(body)]);
}
