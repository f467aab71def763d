import { SETTINGS, type SettingDefinitions } from '../config/settings.ts';
import { EXPORT_SETTINGS } from '../features/exports/settings.ts';
import { ALERT_SETTINGS } from '../features/notifications/settings.ts';
import { OPERATOR_SETTINGS, oidcSettings } from '../features/operators/settings.ts';
import type { Feature } from './feature.ts';

/** Every process loads this file. So it imports only settings, and a feature's members load its other code when they are called. */
export const FEATURES: readonly Feature[] = [
  {
    // Searches of machines over all regions, answered from an index in a reader's memory.
    name: 'search',
    read: async () => (await import('../features/search/routes.ts')).readSearch,
  },
  {
    // What machines and clusters cost: terms, prices of regions, and the costs of an organization's clusters.
    name: 'costs',
    read: async () => (await import('../features/costs/routes.ts')).readCosts,
  },
  {
    // When machines could be ordered, and when they were sold out.
    name: 'availability',
    read: async () => (await import('../features/availability/routes.ts')).openAvailability,
  },
  {
    // Plans of managed databases: operations that answer from the catalogue in memory, and a command.
    name: 'databases',
    read: async () => (await import('../features/databases/routes.ts')).readDatabasePlans,
    commands: [{ names: ['databases'], load: () => import('../features/databases/commands.ts') }],
  },
  {
    // Engines and versions of clusters, and the ends of their support.
    name: 'lifecycle',
    read: async () => (await import('../features/lifecycle/routes.ts')).readLifecycle,
  },
  {
    // The changes feed, `/v1/changes`: the publisher appends changes, and readers serve them.
    name: 'feed',
    read: async () => (await import('../features/feed/routes.ts')).readFeed,
    prune: async (db, { settings }) =>
      (await import('../features/feed/append-changes.ts')).pruneFeed(db, settings.CHANGES_KEPT),
  },
  {
    // Readers on a streaming replica of PostgreSQL, which may be behind its primary.
    name: 'replica',
    check: async (config) => (await import('../features/replica/check.ts')).checkReplica(config),
  },
  {
    // Files of the whole catalogue: a worker makes them, and readers serve them. See docs/exports.md.
    name: 'exports',
    settings: EXPORT_SETTINGS,
    read: async () => (await import('../features/exports/routes.ts')).readExports,
    conditions: {
      kinds: {
        exports_behind:
          'for more than an hour, and two intervals, no files of the changed catalogue could be made',
      },
      find: async (db, config) =>
        (await import('../features/exports/export-state.ts')).findBehind(db, config),
    },
    check: async (config) => (await import('../features/exports/export-state.ts')).checkExports(config),
  },
  {
    // Signed messages: to operators about problems, to an organization about its clusters and prices. See docs/notifications.md.
    name: 'notifications',
    settings: ALERT_SETTINGS,
    commands: [
      { names: ['alert'], load: () => import('../features/notifications/alert-commands.ts') },
      { names: ['webhook'], load: () => import('../features/notifications/webhook-commands.ts') },
    ],
    operations: async (context) => (await import('../features/notifications/routes.ts')).alertsPart(context),
    queues: [
      {
        name: 'notifications',
        schedule: { cron: '* * * * *', job: 'notify' },
        // A place for each receiver of alerts and one for the job of the minute stay free of organizations' webhooks.
        concurrency: async (config) => {
          const { alertRules, WEBHOOKS_AT_ONCE } = await import('../features/notifications/rules.ts');
          return WEBHOOKS_AT_ONCE + alertRules(config).webhooks.length + 1;
        },
        open: async (context) => (await import('../features/notifications/notify.ts')).notifications(context),
      },
    ],
    prune: async (db) => {
      await (await import('../db/alerts.ts')).pruneAlerts(db);
      await (await import('../features/notifications/receivers.ts')).pruneWebhooks(db);
      await (await import('../features/notifications/messages.ts')).pruneMessages(db);
    },
  },
  {
    // Operators with roles: they sign in with tokens or by OpenID Connect. See docs/console.md.
    name: 'operators',
    settings: OPERATOR_SETTINGS,
    commands: [{ names: ['operator'], load: () => import('../features/operators/commands.ts') }],
    operations: async ({ config, store }) =>
      (await import('../features/operators/sign-in/sign-in.ts')).operatorsPart({
        store,
        oidc: oidcSettings(config),
      }),
  },
  {
    // Own prices of organizations: commands and routes that change price books. See docs/price-book.md.
    name: 'price-book',
    commands: [{ names: ['price'], load: () => import('../features/price-book/commands.ts') }],
    operations: async (context) => (await import('../features/price-book/routes.ts')).priceBookPart(context),
  },
  {
    // The console: pages for a browser in the operators' server, and their API. See docs/console.md.
    name: 'console',
    operations: async (context) => (await import('../features/console/console.ts')).openConsole(context),
  },
];

/** The settings of all features. A process reads all at its start, so that it reports every wrong one. */
export const FEATURE_SETTINGS: SettingDefinitions = Object.assign(
  {},
  ...FEATURES.map(({ settings }) => settings ?? {}),
);

/** Every setting except those of sources (`<ID>_URL`, `<ID>_TOKEN`, `<ID>_SCHEDULE`, `<ID>_MAX_AGE`). */
export const ALL_SETTINGS: SettingDefinitions = { ...SETTINGS, ...FEATURE_SETTINGS };

export const FOUND_KINDS: Readonly<Record<string, string>> = Object.assign(
  {},
  ...FEATURES.map(({ conditions }) => conditions?.kinds ?? {}),
);
