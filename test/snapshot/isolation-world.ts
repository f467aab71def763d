/**
 * Organizations whose every text and price identifies them, and requests that search for them in other organizations'
 * answers.
 */
import { createHash } from 'node:crypto';
import { type Agent, request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { createToken } from '../../src/db/tokens.ts';
import { SCOPES } from '../../src/domain/scope.ts';
import { addCluster, addOrganization } from './rows.ts';
import type { TestScene } from './scene.ts';

/** Slugs that any organization may have, and one that none has. */
export const SLUGS = ['primary', 'events', 'größe', 'test'] as const;
export const NO_SLUG = 'no-cluster-has-this';

const MARKER = /zq[0-9a-f]{16}/g;

export interface Member {
  readonly id: number;
  readonly marker: string;
  readonly token: string;
  readonly slugs: readonly string[];
  /** A region that is in no catalogue, named by this organization's clusters. */
  readonly regionId: number;
  /** A machine that is in no catalogue, named by this organization's clusters. */
  readonly machineId: number;
}

/** Creates an organization with a cluster for each slug, unpublished. */
export async function addMember(
  { sql, store, sample }: TestScene,
  name: string,
  slugs: readonly string[],
): Promise<Member> {
  const marker = `zq${createHash('sha256').update(name).digest('hex').slice(0, 16)}`;
  const id = await addOrganization(sql, name);
  const [region] = await sql<{ id: number }[]>`
    insert into regions (provider_id, code, name, organization_id)
    values (${sample.provider}, ${`dc-${marker}`}, ${marker}, ${id}) returning id`;
  const regionId = region?.id ?? expect.unreachable();
  const [machine] = await sql<{ id: number }[]>`
    insert into machines (region_id, name, cpu, ram, ram_unit, excluded_reason)
    values (${sample.region}, ${`own ${marker}`}, 2, 4, 'Binary', 'unlisted') returning id`;
  const machineId = machine?.id ?? expect.unreachable();
  for (const [index, slug] of slugs.entries()) {
    await addCluster(sql, id, {
      slug,
      name: `${slug} ${marker}`,
      source: 'plane',
      regionId: index % 2 === 0 ? sample.region : regionId,
      machineId: sample.small,
    });
  }
  await sql`update users set first_name = ${marker}, last_name = last_name || ${marker} where organization_id = ${id}`;
  await sql`update disk_types set name = name || ${marker} where organization_id = ${id}`;
  await sql`update clusters set status = ${marker} where organization_id = ${id}`;
  const { token } = await createToken(store.db, { organizationId: id, scopes: SCOPES });
  return { id, marker, token, slugs, regionId, machineId };
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface Question {
  readonly path: string;
  readonly token: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function sendQuestion(
  agent: Agent,
  port: number,
  { path, token, method, headers }: Question,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        agent,
        port,
        host: '127.0.0.1',
        path,
        method,
        headers: { ...headers, authorization: `Bearer ${token}` },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const raw = Buffer.concat(chunks);
          const coding = raw.length === 0 ? undefined : response.headers['content-encoding'];
          const body =
            coding === 'br' ? brotliDecompressSync(raw) : coding === 'gzip' ? gunzipSync(raw) : raw;
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: body.toString() });
        });
      },
    );
    sent.on('error', reject);
    sent.end();
  });
}

/** Asserts that no part of an answer, headers or body, is another organization's. */
export function expectOnlyOwn(member: Member, { headers, body }: Answer): void {
  const strangers = `${JSON.stringify(headers)}\n${body}`
    .match(MARKER)
    ?.filter((marker) => marker !== member.marker);
  expect(strangers ?? []).toEqual([]);
}
