/** Writes docs/adapters.md from the adapters. Part of `npm run docs`. */
import { writeFileSync } from 'node:fs';
import { inPackage } from '../../src/config/package.ts';
import { catalogueAdapters, clusterAdapters } from '../../src/sources/registry.ts';
import { adapterPage } from './describe.ts';

if (import.meta.main)
  writeFileSync(inPackage('docs/adapters.md'), adapterPage(catalogueAdapters, clusterAdapters));
