/** Answers of endoflife.date's API v1, written for the tests from the facts of its description. */
import { PRODUCTS } from '../../../src/domain/lifecycle.ts';
import type { FakeUpstream } from '../../support/fake-upstream.ts';

export type Release = Readonly<Record<string, unknown>>;

/** A release without phases other than the community's support. `eolFrom` null: no end is announced. */
export const release = (name: string, eolFrom: string | null, fields: Release = {}): Release => ({
  name,
  codename: null,
  label: name,
  releaseDate: '2020-01-02',
  isLts: false,
  ltsFrom: null,
  isEol: false,
  eolFrom,
  isMaintained: true,
  latest: { name: `${name}.9`, date: '2026-08-01', link: 'https://example.com/notes' },
  custom: null,
  ...fields,
});

export const product = (name: string, releases: readonly unknown[], fields: object = {}) => ({
  schema_version: '1.2.1',
  generated_at: '2026-08-22T08:52:34+00:00',
  last_modified: '2026-08-13T00:06:36+00:00',
  result: {
    name,
    aliases: [],
    label: name,
    category: 'database',
    tags: ['database'],
    versionCommand: null,
    identifiers: [],
    labels: { eoas: null, discontinued: null, eol: 'Support', eoes: null },
    links: { icon: null, html: `https://endoflife.date/${name}`, releasePolicy: null },
    releases,
    ...fields,
  },
});

/** One release of each product. */
export const RELEASES: Readonly<Record<string, readonly Release[]>> = Object.fromEntries(
  Object.values(PRODUCTS).map((name) => [name, [release('1', '2028-01-01')]]),
);

/** Expects one request for each product. @param given other releases, or a whole answer, of some products */
export function expectProducts(
  upstream: FakeUpstream,
  given: Readonly<Record<string, readonly unknown[] | object>> = {},
): void {
  for (const [name, usual] of Object.entries(RELEASES)) {
    const answer = given[name] ?? usual;
    const json = Array.isArray(answer) ? product(name, answer) : answer;
    upstream.expect({ path: `/api/v1/products/${name}/`, times: 'any' }, { json });
  }
}
