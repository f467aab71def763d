import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { afterEach, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { isForbidden } from '../../../src/sources/http/forbidden-address.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';

const LIMITS = { deadlineMs: 5_000, maxBytes: 1_000, credentials: 'none' } as const;

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

it.each([
  ['169.254.0.1', true],
  ['169.253.255.255', false],
  ['168.63.129.16', true],
  ['fe80::1', true],
  ['fe80::1%eth0', true],
  ['[fd00:ec2::254]', true],
  ['fd00:ec2::253', false],
  ['::ffff:169.254.169.254', true],
  ['::ffff:a9fe:a9fe', true],
  ['64:ff9b::a9fe:a9fe', true],
  ['fd00:ec2::23', true],
  ['fd20:ce::254', true],
  ['fd20:ce::253', false],
  ['fd00:c1::a9fe:a9fe', true],
  ['fd00:42::42', true],
  ['febf::a9fe:a9fe', true],
  ['::a9fe:a9fe', true],
  ['::169.254.169.254', true],
  ['::ffff:0:169.254.169.254', true],
  ['::ffff:0:10.0.0.1', false],
  ['2002:a9fe:a9fe::1', true],
  ['2002:a00:1::a9fe:a9fe', false],
  ['64:ff9b:1:a9fe:a9:fe00::', true],
  ['64:ff9b:1:a9:fe:a9fe::', true],
  ['64:ff9b:1::a9:fea9:fe00:0', true],
  ['64:ff9b:1::a9fe:a9fe', true],
  ['64:ff9b:1::a00:1', false],
  ['2001:db8::5efe:169.254.169.254', true],
  ['2001:db8::200:5efe:169.254.169.254', true],
  ['2001:db8::169.254.169.254', false],
  ['::ffff:127.0.0.1', false],
  ['127.0.0.1', false],
  ['::1', false],
  ['10.0.0.1', false],
  ['Metadata.Google.Internal.', true],
  ['api.hetzner.cloud', false],
])('%s is forbidden: %s', (host, expected) => {
  expect(isForbidden(host)).toBe(expected);
});

it.each(['169.254.169.254', '::ffff:169.254.169.254'])(
  'a name that resolves to %s is rejected when the connection is made',
  async (address) => {
    // Only a name server could do this in reality.
    const family = address.includes(':') ? 6 : 4;
    const answer = (_: string, options: { all?: boolean }, callback: (...found: unknown[]) => void) =>
      options.all ? callback(null, [{ address, family }]) : callback(null, address, family);
    vi.spyOn(dns, 'lookup').mockImplementation(answer as unknown as typeof dns.lookup);
    syncBuiltinESMExports();
    const http = openSourceHttp({ ...LIMITS, baseUrl: 'http://catalogue.test' });
    await expect(http.json('/list', z.unknown())).rejects.toMatchObject({
      kind: 'misconfigured',
      message: expect.stringContaining(`catalogue.test resolves to ${address}`),
    });
  },
);

/** The error of a source that is redirected there. */
async function redirectedTo(location: string, redirectsTo: readonly string[]): Promise<unknown> {
  await using upstream = await fakeUpstream();
  upstream.expect({ path: '/list' }, { status: 302, headers: { location } });
  const http = openSourceHttp({ ...LIMITS, baseUrl: upstream.url, redirectsTo });
  return await http.json('/list', z.unknown()).then(
    () => expect.unreachable('it was followed'),
    (error: unknown) => error,
  );
}

it('a redirect to another origin on loopback is only followed if the configuration names it', async () => {
  await using other = await fakeUpstream();
  expect(await redirectedTo(`${other.url}/list`, ['http://127.0.0.1:1'])).toMatchObject({
    kind: 'misconfigured',
    message: expect.stringContaining('redirectsTo'),
  });
  expect(other.received).toEqual([]);
});

it.each([
  'http://169.254.169.254',
  'http://2852039166',
  'http://0xa9fea9fe',
  'http://0251.0376.0251.0376',
  'http://[::ffff:169.254.169.254]',
  'http://[fe80::1]',
  'http://[fd00:ec2::254]',
  'http://metadata.google.internal',
])('%s is rejected, as a configured redirect and as the URL', async (origin) => {
  const message = expect.stringContaining('which no source may read');
  const refused = { kind: 'misconfigured', message };
  expect(await redirectedTo(`${origin}/latest`, [new URL(origin).origin])).toMatchObject(refused);
  const http = openSourceHttp({ ...LIMITS, baseUrl: origin });
  await expect(http.json('/latest', z.unknown())).rejects.toMatchObject(refused);
});
