import { describe, expect, it } from 'vitest';
import { siblingHost, type TwoHosts } from '../../../src/sources/http/address.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import type { SourceHttp } from '../../../src/sources/source.ts';

const hosts: TwoHosts = {
  below: /^(.*)\/projects\/[^/]+\/?$/,
  example: 'https://compute.example.com/projects/PROJECT',
  first: /(^|\.)compute\.example\.com$/,
  second: 'https://billing.example.com',
  credentials: 'none',
};

/** The address and the credentials of a request to the second host of a source at `baseUrl`. */
function askedAt(baseUrl: string): [string, 'same' | 'key' | 'none'] {
  const http = openSourceHttp({ baseUrl, credentials: 'bearer', deadlineMs: 1_000, maxBytes: 1_000 });
  const requested: [string, 'same' | 'key' | 'none'][] = [];
  const noting: SourceHttp = {
    ...http,
    at(url, credentials) {
      requested.push([url, credentials]);
      return http.at(url, credentials);
    },
  };
  const other = siblingHost(noting, hosts);
  const [url, credentials] = requested[0] ?? ['', 'none'];
  expect([requested.length, other.base.href]).toEqual([1, new URL(url).href]);
  return [url, credentials];
}

describe('the second host of a provider', () => {
  it.each([
    [
      'is the first sibling host of its first host',
      'https://compute.example.com/projects/p',
      'https://billing.example.com',
      'none',
    ],
    [
      'is the sibling host of a region’s host',
      'https://eu.compute.example.com/projects/p/',
      'https://billing.example.com',
      'none',
    ],
    [
      'is the gateway, if there is one',
      'https://gate.example.org/projects/p',
      'https://gate.example.org',
      'same',
    ],
    [
      'is below the same path of a gateway',
      'http://10.0.0.1:8080/a/b/projects/p',
      'http://10.0.0.1:8080/a/b',
      'same',
    ],
    [
      'is not a host with a similar ending',
      'https://evilcompute.example.com/projects/p',
      'https://evilcompute.example.com',
      'same',
    ],
  ] as const)('%s', (_, baseUrl, url, credentials) => {
    expect(askedAt(baseUrl)).toEqual([url, credentials]);
  });

  it.each([
    'https://compute.example.com',
    'https://compute.example.com/projects/',
    'https://x.org/projects/p/zones',
  ])('is unknown for %s, which names no project', (baseUrl) => {
    expect(() => askedAt(baseUrl)).toThrow(
      "the source's URL must look like https://compute.example.com/projects/PROJECT",
    );
  });
});
