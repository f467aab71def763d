/** Breaks the product as it loads: `node --import …/mutate.ts`. */
import { registerHooks } from 'node:module';
import { MUTATIONS } from './mutations.ts';

const mutation = MUTATIONS.find(({ name }) => name === process.env.ORACLE_MUTATION);
if (!mutation) throw new Error(`ORACLE_MUTATION names no mutation: ${process.env.ORACLE_MUTATION}`);
const { name, file, find, replace } = mutation;
const target = new URL(`../../${file}`, import.meta.url).href;

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (url !== target) return loaded;
    const source = String(loaded.source);
    if (source.split(find).length !== 2)
      throw new Error(`"${name}": ${file} must have this text once: ${find}`);
    return { ...loaded, source: source.replace(find, () => replace) };
  },
});
