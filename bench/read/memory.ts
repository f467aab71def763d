/** `npm run bench -- read memory`: the memory of entries, and the constants that account for it (src/snapshot/read/budget.ts). */
import { type IncomingMessage, ServerResponse } from 'node:http';
import { hashToken, newToken } from '../../src/domain/token.ts';
import { ResponseCache } from '../../src/http/hot/response-cache.ts';
import type { Answer } from '../../src/snapshot/document/answer.ts';
import { hashOf } from '../../src/snapshot/document/body.ts';
import { regionContent, tokenContent } from '../../src/snapshot/document/build.ts';
import { decodeDocument, encodeDocument, encoding } from '../../src/snapshot/document/format.ts';
import { CacheKeys, documentId } from '../../src/snapshot/document/keys.ts';
import { TokenDocument } from '../../src/snapshot/document/token-document.ts';
import {
  BYTES_PER_DOCUMENT,
  BYTES_PER_ENTRY,
  BYTES_PER_RESPONSE,
  BYTES_PER_TOKEN,
} from '../../src/snapshot/read/budget.ts';
import { Consistency } from '../../src/snapshot/read/consistency.ts';
import type { CacheLink } from '../../src/snapshot/read/link.ts';
import { MachineRegions } from '../../src/snapshot/read/machine-regions.ts';
import { DocumentMemory } from '../../src/snapshot/read/memory.ts';
import type { PostgresReads } from '../../src/snapshot/read/postgres-reads.ts';
import { TokenMemory } from '../../src/snapshot/read/token-memory.ts';
import type { Bar } from '../support/bar.ts';
import { flag, readOptions, report } from '../support/harness.ts';

const { json } = readOptions(
  `The memory of an entry of each kind in addition to its bytes, compared with the constant that accounts for it. A constant may be up to
half too large, and not too small.`,
  { json: flag('prints JSON') },
);
const COUNT = 20_000;
/** Largest accepted ratio of a constant to the measured value. */
const SLACK = 1.5;

const link = {
  linked: true,
  epoch: 1,
  confirmedAt: () => 0,
  commands: {
    hedge: async (_: unknown, accept: (reply: string) => unknown) => accept('7'),
  } as unknown as CacheLink['commands'],
} as Partial<CacheLink> as CacheLink;

/** Bytes of this process after garbage collection. */
async function used(): Promise<number> {
  for (let i = 0; i < 6; i++) {
    globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    await new Promise(setImmediate);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** @param fill makes the entries, and returns their holder and the bytes that they contain themselves */
async function perEntry(
  count: number,
  fill: () => Promise<{ entries: unknown; held: number }>,
): Promise<number> {
  await fill();
  const before = await used();
  const { entries, held } = await fill();
  const after = await used();
  // Referenced until here, so that it is not collected.
  if (entries === undefined) throw new Error('unreachable: the entries exist');
  return (after - before - held) / count;
}

function shared() {
  return {
    rules: new Consistency({ link, now: Date.now, staleLimitMs: 0, tokenStaleLimitMs: 0 }),
    freshness: { timeOf: () => undefined },
    memoryLimit: 1e9,
    onInvalidate() {},
  };
}

const region = (id: number) =>
  regionContent(
    { id, name: `Region ${id}`, code: `zone-${id}`, version: 1, provider: { id: 5, name: 'Provider' } },
    [{ id, name: 'machine', ram: 4, cpu: 2, price: 0.0001, ramUnit: 'Decimal' }],
    { sources: [`provider/${id}`], currency: 'USD' },
  );

async function documents() {
  const entries = new DocumentMemory({ ...shared(), bytesPerEntry: 0 });
  let held = 0;
  for (let id = 1; id <= COUNT; id++) {
    const content = region(id);
    const value = await encodeDocument(content);
    held += value.length;
    const own = Buffer.allocUnsafeSlow(value.length);
    value.copy(own);
    const document = decodeDocument(content.name, own);
    entries.onServed({ id: documentId(content.name), name: content.name }, { document, epoch: 1, at: 0 });
  }
  return { entries, held };
}

const tokenMemory = () => new TokenMemory({ ...shared(), unknownTokensLimit: 1e9 });

async function tokens() {
  const entries = tokenMemory();
  for (let id = 1; id <= COUNT; id++) {
    // A separate text, like that of a request.
    const text = Buffer.from(newToken()).toString();
    const scopes = ['machines:read', 'clusters:read'];
    const record = { id, organizationId: id, scopes, expiresAt: null, revoked: false };
    const content = tokenContent(hashToken(text), 1, record);
    const document = new TokenDocument(documentId(content.name), encoding(content).document);
    entries.onServed({ id: document.id, name: content.name }, { document, epoch: 1, at: Date.now() });
    entries.accept(document, text);
  }
  return { entries, held: 0 };
}

async function unknownTokens() {
  const entries = tokenMemory();
  for (let i = 0; i < COUNT; i++) {
    const name = { kind: 'token', hash: hashToken(String(i)) } as const;
    entries.onServed({ id: documentId(name), name }, { document: undefined, epoch: 1, at: Date.now() });
  }
  return { entries, held: 0 };
}

async function responses() {
  const entries = new ResponseCache({ linked: true, addInvalidationListener() {} }, 1e9);
  const list = Buffer.alloc(COUNT * 200, 'x');
  for (let i = 0; i < COUNT; i++) {
    const identity = list.subarray(i * 200, i * 200 + 200);
    const body = { identity, gzip: undefined, br: undefined, hash: hashOf(Buffer.from(String(i))) };
    const asOf = () => '2026-01-01T00:00:00.000Z';
    const validity = { documents: [`region:${Math.floor(i / 10)}`], asOf };
    const answer: Answer = { body, tier: 'memory', asOf: asOf(), currency: 'USD', validity };
    const target = `/v1/machines/${i}`;
    entries.set({ target, owner: 0, route: '/v1/machines/{id}', scope: 'machines:read' }, answer);
    const request = { method: 'GET', headers: {} } as IncomingMessage;
    entries.get(target, 1)?.prepared.write(request, new ServerResponse(request), 'id');
  }
  return { entries, held: list.length };
}

async function pages() {
  const entries = new MachineRegions({
    link,
    postgres: {} as PostgresReads,
    now: Date.now,
    memoryLimit: 1e9,
  });
  const lineage = new CacheKeys('bench');
  for (let i = 0; i < COUNT; i++) await entries.get(i * 256 + 1, lineage);
  return { entries, held: COUNT * 256 * 4 };
}

const KINDS = [
  ['BYTES_PER_DOCUMENT', 'a document', BYTES_PER_DOCUMENT, documents],
  ['BYTES_PER_TOKEN', 'a token', BYTES_PER_TOKEN, tokens],
  ['BYTES_PER_RESPONSE', 'a cached response', BYTES_PER_RESPONSE, responses],
  ['BYTES_PER_ENTRY', 'a token that is unknown', BYTES_PER_ENTRY, unknownTokens],
  ['BYTES_PER_ENTRY', 'a page of machine ids', BYTES_PER_ENTRY, pages],
] as const;

const bars: Bar[] = [];
for (const [name, what, constant, fill] of KINDS) {
  const ratio = constant / (await perEntry(COUNT, fill));
  const bar = { what: `${what}: ${name} (${constant}) / bytes`, found: ratio, unit: '×' };
  bars.push({ ...bar, limit: 1, bound: 'least' }, { ...bar, what: 'the same', limit: SLACK });
}
report(bars, { json });
