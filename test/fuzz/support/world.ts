/** The API over PostgreSQL and Redis with organizations whose every text gives them away, listening on a port. */
import { Ajv } from 'ajv';
import type { FastifyInstance } from 'fastify';
import { createToken } from '../../../src/db/tokens.ts';
import { newToken } from '../../../src/domain/token.ts';
import { buildApp } from '../../../src/http/app.ts';
import { listen } from '../../http/harness.ts';
import { addMember, SLUGS } from '../../snapshot/isolation-world.ts';
import { addMachines } from '../../snapshot/rows.ts';
import type { TestScene } from '../../snapshot/scene.ts';

/** A token, and whose data it may read. */
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

/** An operation as `/openapi.json` describes it. */
export interface OperationDoc {
  readonly path: string;
  readonly parameters: readonly ParameterDoc[];
  /** What is wrong with a document by the schema of its 200; undefined where nothing is. */
  validate(document: unknown): string | undefined;
}

export interface FuzzWorld extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly port: number;
  readonly operations: readonly OperationDoc[];
  /** Good ones of each organization, and such that may read nothing, or half. */
  readonly keys: readonly Key[];
  /** Ids and slugs that lead somewhere. */
  readonly ids: readonly number[];
  readonly slugs: readonly string[];
}

/** After so long a connection that only waits is closed (ms): what hangs is told from it by far. */
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
  // Nothing is to be refused for being too much: every 5xx is a defect here.
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
      // More often than the others: what is refused at the door finds out little.
      ...[...members, ...members, ...members].map(({ token, marker }) => ({ token, marker })),
      ...halves.map(({ token }) => ({ token, marker: red.marker })),
      { token: revoked.token, marker: undefined },
      // Well formed, and nobody's.
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
