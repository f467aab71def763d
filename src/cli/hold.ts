import { readNamedSources } from '../config/named-sources.ts';
import { databaseUrls } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import { batchRecords, pendingBatches } from '../db/reads/held.ts';
import { type PageOptions, pageLimit } from './arguments.ts';
import { configured, decision, pendingBatch, readBatch, recordOf } from './hold-batch.ts';
import { showDecided } from './hold-decided.ts';
import { headline, previewText } from './hold-preview.ts';
import { openReadOnly } from './open-read-only.ts';
import { print, printJson, printText } from './print.ts';
import { fitted, terminalWidth, wrapped } from './table.ts';

/** What waits; with `all` what was decided as well: when, by whom and why. */
export async function holdList(env: Environment, options: { json?: boolean; all?: boolean }): Promise<void> {
  await using register = openReadOnly(env);
  const { sql } = register;
  const batches = options.all ? await batchRecords(sql, undefined) : await pendingBatches(sql);
  if (options.json) return printJson(batches);
  if (batches.length === 0) print(options.all ? 'nothing was ever held' : 'nothing is held');
  for (const batch of batches) {
    printText(wrapped(headline(batch), terminalWidth()));
    if (options.all)
      printText(
        fitted([`  ${decision(batch)}`], terminalWidth())
          .map((line) => `${line}\n`)
          .join(''),
      );
  }
}

/** Shows what a pending batch would change, or the decision about another one and its result. */
export async function holdShow(
  env: Environment,
  source: string,
  named: string | undefined,
  options: PageOptions,
): Promise<void> {
  const limit = pageLimit(options);
  const { settings, sources } = readNamedSources(env);
  // To compare a batch takes staging, which Drizzle has a part in.
  const { openStore } = await import('../db/connect.ts');
  await using store = openStore({ ...databaseUrls({ settings }), role: 'worker', connections: 2 });
  const { sql } = store;
  const batch =
    named === undefined ? await pendingBatch(sql, source) : await recordOf(sql, source, readBatch(named));
  if (batch.status !== 'pending') return await showDecided(sql, batch, limit, options);
  const { previewHeld } = await import('../app/run-source.ts');
  const preview = await previewHeld({ settings }, store, configured(sources, source), batch.id, limit);
  if (options.json) return printJson({ ...batch, ...preview });
  printText(wrapped(headline(batch), terminalWidth()));
  printText(previewText(preview, limit));
  print(
    `\nfleetbook hold approve ${source} ${batch.id}   stores it\nfleetbook hold reject ${source} ${batch.id}    drops it`,
  );
}
