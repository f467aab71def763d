/** The description of the API, as a reader with all features serves it. */
import { FEATURE_SETTINGS } from '../../src/app/features.ts';
import { openLogger } from '../../src/app/logger.ts';
import { apiOptions, composeReader } from '../../src/app/reader.ts';
import { readSettings } from '../../src/config/settings.ts';
import { buildApp } from '../../src/http/app.ts';

/** The description reads no data, so no server answers at these addresses. */
const ADDRESSES = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', REDIS_URL: 'redis://127.0.0.1:1' };

/** @param version release that the description names */
export async function openApiText(version: string): Promise<string> {
  const settings = readSettings(ADDRESSES, FEATURE_SETTINGS);
  await using reader = await composeReader({ settings }, openLogger({ LOG_LEVEL: 'silent' }, 'site'));
  const app = buildApp({ ...reader, logger: false, version, ...apiOptions(settings) });
  try {
    const answer = await app.inject('/openapi.json');
    if (answer.statusCode !== 200) throw new Error(`/openapi.json answers ${answer.statusCode}`);
    return answer.body;
  } finally {
    await app.close();
  }
}
