/** The API with the costs of two organizations, over real servers. */

import { createToken } from '../../../src/db/tokens.ts';
import { SCOPES } from '../../../src/domain/scope.ts';
import { buildApp } from '../../../src/http/app.ts';
import { PATIENT } from '../../http/harness.ts';
import type { ReaderOptions, sceneForEachTest } from '../../snapshot/scene.ts';

/** Publishes everything, and returns what reads the API as either organization. */
export async function openCosts(scene: ReturnType<typeof sceneForEachTest>, given?: Partial<ReaderOptions>) {
  await scene.publisher.publishDirty();
  const reader = await scene.linkedReader(given);
  const app = buildApp({
    ...reader,
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1.2.3',
    limits: PATIENT,
  });
  const tokenOf = async (organizationId: number) =>
    (await createToken(scene.store.db, { organizationId, scopes: [...SCOPES] })).token;
  const tokens = { a: await tokenOf(scene.sample.a), b: await tokenOf(scene.sample.b) };
  const get = (url: string, of: keyof typeof tokens = 'a', headers: Record<string, string> = {}) =>
    app.inject({ url, headers: { authorization: `Bearer ${tokens[of]}`, ...headers } });
  return {
    app,
    get,
    replica: reader.replica,
    /** The document of a 200. */
    async json<T>(url: string, of?: keyof typeof tokens): Promise<T> {
      const response = await get(url, of);
      if (response.statusCode !== 200) throw new Error(`${url}: ${response.body}`);
      return response.json();
    },
    [Symbol.asyncDispose]: () => app.close(),
  };
}
