import { mkdtempDisposable, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Runs a process in an environment where Node records loaded modules.
 * @param run starts a process with this additional environment, and waits for its end
 * @returns the result of `run`, and the paths of all loaded modules, relative to the repository's root
 */
export async function loadedModules<T>(
  run: (env: Record<string, string>) => Promise<T>,
): Promise<{ readonly result: T; readonly modules: readonly string[] }> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-modules-'));
  const result = await run({ NODE_V8_COVERAGE: folder.path });
  const root = new URL('../../../', import.meta.url).href;
  const modules = new Set<string>();
  for (const name of await readdir(folder.path)) {
    const report = JSON.parse(await readFile(join(folder.path, name), 'utf8')) as {
      readonly result: readonly { readonly url: string }[];
    };
    for (const { url } of report.result) if (url.startsWith(root)) modules.add(url.slice(root.length));
  }
  return { result, modules: [...modules].sort() };
}
