import { readdirSync } from 'node:fs';

/** The bundler replaces each call with static imports (rolldown.config.ts), so the argument is always a literal URL. */
export async function modulesIn<T>(folder: URL): Promise<Readonly<Record<string, Partial<T>>>> {
  const names = readdirSync(folder).filter((name) => /^[a-z0-9-]+\.ts$/.test(name));
  const modules = names.sort().map(async (name) => {
    const module = (await import(new URL(name, folder).href)) as Partial<T>;
    return [name.replace('.ts', ''), module] as const;
  });
  return Object.fromEntries(await Promise.all(modules));
}
