import type { Database } from '../../db/connection/client.ts';
import { providerNames } from '../../db/providers.ts';
import { UsageFailure } from './failure.ts';

/** Finds a provider by name or id; undefined without the option. @throws UsageFailure that lists the providers */
export async function knownProvider(
  db: Database,
  text: string | undefined,
): Promise<{ id: number; name: string } | undefined> {
  if (text === undefined) return undefined;
  const names = await providerNames(db);
  for (const [id, name] of names) {
    if (String(id) === text || name.toLowerCase() === text.toLowerCase()) return { id, name };
  }
  const known = [...names].map(([id, name]) => `${name} (${id})`).join(', ');
  throw new UsageFailure(
    `--provider ${JSON.stringify(text)}: there is no such provider; ${known === '' ? 'none is stored yet' : `known providers: ${known}`}`,
  );
}
