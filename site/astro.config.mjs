import starlight from '@astrojs/starlight';
import { defineConfig, passthroughImageService } from 'astro/config';
import starlightOpenAPI, { openAPISidebarGroups } from 'starlight-openapi';
import menu from './.generated/menu.json' with { type: 'json' };

export default defineConfig({
  // An address below which the site is served, for example /fleetbook. Links between pages are relative.
  base: process.env.DOCS_BASE || '/',
  publicDir: './.generated/public',
  image: { service: passthroughImageService() },
  devToolbar: { enabled: false },
  integrations: [
    starlight({
      title: 'Fleetbook',
      description:
        'A catalogue of cloud machines and a register of database clusters behind a fast HTTP API.',
      favicon: '/favicon.svg',
      customCss: ['./src/styles.css'],
      credits: false,
      tableOfContents: { minHeadingLevel: 2, maxHeadingLevel: 3 },
      plugins: [
        starlightOpenAPI([
          {
            base: 'reference',
            schema: './.generated/openapi.json',
            sidebar: { label: 'API reference', collapsed: true },
          },
        ]),
      ],
      sidebar: menu.flatMap((section) =>
        section.label === 'Read the API'
          ? [{ ...section, items: [...section.items, ...openAPISidebarGroups] }]
          : [section],
      ),
    }),
  ],
});
