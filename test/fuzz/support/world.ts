/** The API on a port, over PostgreSQL and Redis, with organizations whose every text identifies them. */
import { Ajv } from 'ajv';
import type { FastifyInstance } from 'fastify';
import { createToken } from '../../../src/db/tokens.ts';
import { newToken } from '../../../src/domain/token.ts';
import { buildApp } from '../../../src/http/app.ts';
import { listen } from '../../http/harness.ts';
import { addMember, SLUGS } from '../../snapshot/isolation-world.ts';
import { addMachines } from '../../snapshot/rows.ts';
import type { TestScene } from '../../snapshot/scene.ts';

/** A token, and the organization whose data it may read. */
export interface Key {
  readonly token: string;
  readonly marker: string | undefined;
}

interface ParameterDoc {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly schema: { readonly type: string };
  readonly example: unknown;
}

/** An operation of `/openapi.json`. */
export interface OperationDoc {
  readonly path: string;
  readonly parameters: readonly ParameterDoc[];
  /** Returns the fault of a document by the schema of its 200; undefined if it is valid. */
  validate(document: unknown): string | undefined;
}

export interface FuzzWorld extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly port: number;
  readonly operations: readonly OperationDoc[];
  /** Valid tokens of each organization, and tokens with no or half of the rights. */
  readonly keys: readonly Key[];
  /** Existing ids and slugs. */
  readonly ids: readonly number[];
  readonly slugs: readonly string[];
}

/** An idle connection is closed after this time (ms), well before a hanging one counts as such. */
const SHORT_MS = 400;
const LONG_MS = 60_000;

export async function openFuzzWorld(scene: TestScene): Promise<FuzzWorld> {
  const { sample, sql, store } = scene;
  await addMachines(sql, sample.region, 60);
  const members = [];
  for (const name of ['red', 'green', 'blue']) members.push(await addMember(scene, name, SLUGS));
  const [red] = members;
  if (!red) throw new Error('unreachable: there are three');
  const halves = [];
  for (const scope of ['machines:read', 'clusters:read'] as const)
    halves.push(await createToken(store.db, { organizationId: red.id, scopes: [scope] }));
  const revoked = await createToken(store.db, { organizationId: red.id, scopes: ['clusters:read'] });
  await sql`update tokens set revoked_at = now() where organization_id = ${red.id} and scopes = '{clusters:read}'
    and id = (select max(id) from tokens)`;
  await scene.publisher.publishDirty();
  // No limit may reject requests: each 5xx is a defect here.
  const reader = await scene.linkedReader({
    postgresReads: 32,
    postgresDeadlineMs: LONG_MS,
    unknownTokens: 1e9,
    unknownTokensPerAddress: 1e9,
  });
  const app = buildApp({
    ...reader,
    readiness: async () => ({ ready: true, checks: { catalogue: 'ok' } }),
    logger: false,
    version: '0.0.0',
    responses: reader.responses,
    limits: {
      maxEventLoopDelayMs: 0,
      answerTimeoutMs: LONG_MS,
      headersTimeoutMs: SHORT_MS,
      requestTimeoutMs: SHORT_MS,
      keepAliveTimeoutMs: SHORT_MS,
      checkIntervalMs: 50,
    },
  });
  const port = await listen(app);
  const document = (await app.inject('/openapi.json')).json();
  return {
    app,
    port,
    operations: operationsOf(document),
    keys: [
      // More frequent than the others: requests that are rejected at once find little.
      ...[...members, ...members, ...members].map(({ token, marker }) => ({ token, marker })),
      ...halves.map(({ token }) => ({ token, marker: red.marker })),
      { token: revoked.token, marker: undefined },
      // Well-formed, but of no organization.
      { token: newToken(), marker: undefined },
      { token: '', marker: undefined },
    ],
    ids: [
      sample.provider,
      sample.region,
      sample.emptyRegion,
      sample.small,
      sample.big,
      sample.gpu,
      red.regionId,
    ],
    slugs: [...SLUGS, 'cluster-test', red.marker],
    [Symbol.asyncDispose]: () => app.close(),
  };
}

function operationsOf(document: { paths: Record<string, { get: DocumentedGet }> }): OperationDoc[] {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'api');
  return Object.entries(document.paths).map(([path, { get }]) => {
    const pointer = ['paths', path.replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D')].join(
      '/',
    );
    const check = ajv.compile({
      $ref: `api#/${pointer}/get/responses/200/content/application~1json/schema`,
    });
    return {
      path,
      parameters: get.parameters ?? [],
      validate: (found) =>
        check(found) ? undefined : `not as the schema says: ${ajv.errorsText(check.errors)}`,
    };
  });
}

interface DocumentedGet {
  readonly parameters?: readonly ParameterDoc[];
}
