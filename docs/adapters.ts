/** Writes docs/adapters.md, which is made from the adapters: part of `npm run docs`. */
import { writeFileSync } from 'node:fs';
import { inPackage } from '../src/package.ts';
import { adapterPage } from '../src/sources/describe.ts';
import { catalogueAdapters, clusterAdapters } from '../src/sources/registry.ts';

writeFileSync(inPackage('docs/adapters.md'), adapterPage(catalogueAdapters, clusterAdapters));
