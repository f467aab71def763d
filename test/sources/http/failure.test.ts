import { describe, expect, it } from 'vitest';
import { failureOfConnection, failureOfStatus } from '../../../src/sources/http/failure.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';

const failed = (code: string, more: object = {}) =>
  failureOfConnection(Object.assign(new Error('no'), { code, ...more }), 'https://host/a');

describe('a failed connection', () => {
  it.each([
    ['CERT_REVOKED', 'misconfigured', "check the source's URL"],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'misconfigured', 'NODE_EXTRA_CA_CERTS'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'misconfigured', 'NODE_EXTRA_CA_CERTS'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'misconfigured', 'NODE_EXTRA_CA_CERTS'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'misconfigured', 'another host'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'misconfigured', 'start with http:'],
    ['ERR_PROXY_INVALID_CONFIG', 'misconfigured', 'HTTPS_PROXY'],
    ['ERR_PROXY_TUNNEL', 'retry', 'HTTPS_PROXY'],
    ['CERT_HAS_EXPIRED', 'retry', 'clock'],
    ['CERT_NOT_YET_VALID', 'retry', 'clock'],
    ['ENOTFOUND', 'retry', 'does not resolve'],
    ['EAI_AGAIN', 'retry', 'does not resolve'],
    ['EAI_FAIL', 'retry', 'does not resolve'],
    ['ECONNREFUSED', 'retry', 'nothing listens'],
    ['EHOSTUNREACH', 'retry', 'no network route'],
    ['ENETUNREACH', 'retry', 'no network route'],
    ['ETIMEDOUT', 'retry', 'no network route'],
    ['ECONNRESET', 'retry', 'no whole answer'],
    ['EPIPE', 'retry', 'no whole answer'],
  ])('of %s is %s, and its message names the remedy', (code, kind, expected) => {
    const found = failed(code);
    expect(found).toMatchObject({ kind, message: expect.stringContaining(`(${code})`) });
    expect(found.message).toContain('https://host/a');
    expect(found.message).toContain(expected);
  });

  it('names the looked-up name or the tried address', () => {
    expect(failed('ENOTFOUND', { hostname: 'proxy.test' }).message).toContain('the name proxy.test does not');
    expect(failed('ECONNREFUSED', { address: '10.0.0.1', port: 443 }).message).toContain('10.0.0.1:443');
    const cause = Object.assign(new Error('no'), { code: 'ECONNREFUSED', address: '::1', port: 80 });
    const both = Object.assign(new AggregateError([cause]), { code: 'ECONNREFUSED' });
    expect(failureOfConnection(both, 'there').message).toContain('[::1]:80');
  });

  it('of an error without a code is retried', () => {
    expect(failureOfConnection(new TypeError('terminated'), 'https://host/a').kind).toBe('retry');
  });

  it('of an unresolved name is a network failure, not only a setting', async () => {
    const http = openSourceHttp({
      baseUrl: 'http://no-such-host.invalid/catalogue?key=secret',
      credentials: 'none',
      deadlineMs: 5_000,
      maxBytes: 1_000,
    });
    const error = await http.stream('').catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      kind: 'retry',
      message: expect.stringMatching(
        /^http:\/\/no-such-host\.invalid\/catalogue cannot be reached: the name no-such-host\.invalid does not resolve \(\w+\); network or DNS is down, or the source's URL is wrong$/,
      ),
    });
  });
});

it('a proxy that requires credentials is a setting', () => {
  expect(failureOfStatus(407, new Headers(), 'https://host/a', new Date())).toMatchObject({
    kind: 'misconfigured',
    message: expect.stringContaining('HTTPS_PROXY'),
  });
});
