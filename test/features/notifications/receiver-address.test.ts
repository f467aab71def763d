import { expect, it } from 'vitest';
import { readReceiverAddress } from '../../../src/features/notifications/send.ts';

it.each(['https://example.org/hook?key=1', 'https://10.0.0.7:8443/hook'])('accepts %s', (text) => {
  expect(readReceiverAddress(text)).toEqual(new URL(text));
});

it.each([
  ['hook', /must be a URL/],
  [`https://example.org/${'x'.repeat(2000)}`, /at most 2000 characters/],
  ['http://example.org/hook', /must start with https/],
  ['http://10.0.0.7/', /must start with https/],
  ['http://127.0.0.1:9/hook', /must start with https/],
  ['http://localhost/hook', /must start with https/],
  ['http://[::1]:9/', /must start with https/],
  ['ftp://127.0.0.1/', /must start with https/],
  ['https://me:secret@example.org/', /must not hold a user name/],
  ['https://169.254.169.254/latest', /link-local address or a metadata service/],
  ['https://[::ffff:169.254.169.254]/', /link-local/],
  ['https://metadata.google.internal/', /metadata service/],
])('refuses %s', (text, problem) => {
  expect(readReceiverAddress(text)).toEqual({ problem: expect.stringMatching(problem) });
});
