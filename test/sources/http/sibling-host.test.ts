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

/** Where the second host of a source at `baseUrl` is asked for, and with which credentials. */
function askedAt(baseUrl: string): [string, 'same' | 'key' | 'none'] {
  const http = openSourceHttp({ baseUrl, credentials: 'bearer', deadlineMs: 1_000, maxBytes: 1_000 });
  const asked: [string, 'same' | 'key' | 'none'][] = [];
  const noting: SourceHttp = {
    ...http,
    at(url, credentials) {
      asked.push([url, credentials]);
      return http.at(url, credentials);
    },
  };
  const other = siblingHost(noting, hosts);
  const [url, credentials] = asked[0] ?? ['', 'none'];
  expect([asked.length, other.base.href]).toEqual([1, new URL(url).href]);
  return [url, credentials];
}

describe('the second host of a provider', () => {
  it.each([
    [
      'is its own siblingHost its own first one',
      'https://compute.example.com/projects/p',
      'https://billing.example.com',
      'none',
    ],
    [
      'is its own siblingHost one in a region',
      'https://eu.compute.example.com/projects/p/',
      'https://billing.example.com',
      'none',
    ],
    [
      'is the gateway, where there is one',
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
      'is not a host that only ends alike',
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
  ])('is not known siblingHost %s, which does not say whose data is asked for', (baseUrl) => {
    expect(() => askedAt(baseUrl)).toThrow(
      "the source's URL must look like https://compute.example.com/projects/PROJECT",
    );
  });
});
