import { describe, expect, it } from 'vitest';
import { failureOfConnection } from '../../src/sources/failure.ts';

/** As fetch fails: the system's error is the cause of its own. */
function fetchFailed(cause: Error): TypeError {
  return new TypeError('fetch failed', { cause });
}

describe('a connection that failed', () => {
  it.each([
    ['ENOTFOUND', 'misconfigured'],
    ['CERT_HAS_EXPIRED', 'misconfigured'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'misconfigured'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'misconfigured'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'misconfigured'],
    ['EAI_AGAIN', 'retry'],
    ['ECONNREFUSED', 'retry'],
    ['ECONNRESET', 'retry'],
    ['UND_ERR_HEADERS_TIMEOUT', 'retry'],
  ])('of %s is %s', (code, kind) => {
    const failed = failureOfConnection(
      fetchFailed(Object.assign(new Error('no'), { code })),
      'https://host/a',
    );
    expect(failed).toMatchObject({ kind, message: expect.stringContaining(`(${code})`) });
    expect(failed.message).toContain('https://host/a');
  });

  it('of a port that fetch never uses is misconfigured', () => {
    expect(failureOfConnection(fetchFailed(new Error('bad port')), 'http://host:6000/')).toMatchObject({
      kind: 'misconfigured',
      message: expect.stringContaining('bad port'),
    });
  });

  it('of something without a code is to be tried again', () => {
    expect(failureOfConnection(new TypeError('terminated'), 'https://host/a').kind).toBe('retry');
  });
});
