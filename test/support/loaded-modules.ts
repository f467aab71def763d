import { mkdtempDisposable, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Runs something with an environment in which Node notes what it loads.
 * @param run starts a process with this addition to its environment, and waits for its end
 * @returns what `run` did, and the paths of all modules that the process has loaded, from the repository's root
 */
export async function loadedModules<T>(
  run: (env: Record<string, string>) => Promise<T>,
): Promise<{ readonly result: T; readonly modules: readonly string[] }> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-modules-'));
  const result = await run({ NODE_V8_COVERAGE: folder.path });
  const root = new URL('../../', import.meta.url).href;
  const modules = new Set<string>();
  for (const name of await readdir(folder.path)) {
    const report = JSON.parse(await readFile(join(folder.path, name), 'utf8')) as {
      readonly result: readonly { readonly url: string }[];
    };
    for (const { url } of report.result) if (url.startsWith(root)) modules.add(url.slice(root.length));
  }
  return { result, modules: [...modules].sort() };
}
