/** The description of the API, as a reader with all features serves it. */
import { exportsApi } from '../../src/features/exports/routes.ts';
import { feedApi } from '../../src/features/feed/routes.ts';
import { searchApi } from '../../src/features/search/routes.ts';
import { buildApp } from '../../src/http/app.ts';

/** @param version release that the description names */
export async function openApiText(version: string): Promise<string> {
  // The description reads no data.
  const nothing = {} as never;
  const app = buildApp({
    catalogue: nothing,
    clusters: nothing,
    tokens: nothing,
    features: [searchApi(nothing), exportsApi(nothing), feedApi(nothing)],
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version,
  });
  try {
    const answer = await app.inject('/openapi.json');
    if (answer.statusCode !== 200) throw new Error(`/openapi.json answers ${answer.statusCode}`);
    return answer.body;
  } finally {
    await app.close();
  }
}
