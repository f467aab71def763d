import { existsSync, readFileSync } from 'node:fs';
import { type FakeUpstream, fakeUpstream } from '../support/fake-upstream.ts';
import { hetznerPricing, linodePrices } from '../support/provider-answers.ts';

const DATA = new URL('../../../shared/data/', import.meta.url);

/** Whether the recorded payloads exist on this machine. */
export const hasRecorded = existsSync(new URL('hetzner/server_types.json', DATA));

function recorded(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, DATA), 'utf8'));
}

/** A server that replays recorded answers of Hetzner and Linode. */
export async function replayRecorded(): Promise<FakeUpstream> {
  const upstream = await fakeUpstream();
  const answers: [path: string, query: Record<string, string>, file: string][] = [
    ['/v1/locations', { page: '1', per_page: '50' }, 'hetzner/locations.json'],
    ['/v1/server_types', { page: '1', per_page: '50' }, 'hetzner/server_types.json'],
    ['/v4/linode/types', { page: '1' }, 'linode/types.json'],
    ['/v4/regions', { page: '1' }, 'linode/regions.json'],
    ...[1, 2, 3, 4, 5].map((page): [string, Record<string, string>, string] => [
      '/v4beta/regions/availability',
      { page: String(page) },
      `linode/regions-availability-page${page}.json`,
    ]),
  ];
  for (const [path, query, file] of answers) {
    upstream.expect({ path, query, times: 'any' }, { json: recorded(file) });
  }
  hetznerPricing(upstream);
  linodePrices(upstream);
  return upstream;
}
