import { expect, it } from 'vitest';
import { exo2Signature } from '../../../src/sources/credentials/authorization.ts';

const EXPIRES = 1_599_140_767;

it('equals the documentation’s, including the order of parameters', () => {
  const url = new URL(
    'https://api-ch-gva-2.exoscale.com/v2/resource/a02baf5a-a3e4-49a0-857b-8a08d276c1c0?p2=v2&p1=v1',
  );
  expect(exo2Signature('example-key:example-secret', url, EXPIRES)).toBe(
    'EXO2-HMAC-SHA256 credential=example-key,signed-query-args=p1;p2,expires=1599140767,signature=vPVxcXrf2my0TLdJ8WPIGa/vLld+FiJN+xtMs/vofHg=',
  );
});

it('omits repeated parameters, and accepts a secret with colons', () => {
  const url = new URL('https://api-ch-gva-2.exoscale.com/v2/zone');
  const plain = exo2Signature('k:s:t', url, EXPIRES);
  expect(plain).toMatch(/^EXO2-HMAC-SHA256 credential=k,expires=1599140767,signature=[\w+/]{43}=$/);
  url.search = 'a=1&a=2';
  expect(exo2Signature('k:s:t', url, EXPIRES)).toBe(plain);
  expect(exo2Signature('k:s', url, EXPIRES)).not.toBe(plain);
});
