import type { Command } from 'commander';
import { z } from 'zod';
import type { CommandContext } from '../../app/feature.ts';
import { CommandFailure } from '../../cli/terminal/failure.ts';
import { existingOrganization } from '../../cli/terminal/find-named.ts';
import { openDatabase } from '../../cli/terminal/open.ts';
import {
  add,
  addChange,
  type ChangingOf,
  decider,
  type OfOrganization,
  ORG,
  readArguments,
  readId,
} from '../../cli/terminal/options.ts';
import { ago, alignedTable, print, printJson } from '../../cli/terminal/output.ts';
import type { Environment } from '../../config/config.ts';
import type { Organization } from '../../db/organizations.ts';
import { WEBHOOK_EVENTS } from '../../db/schema.ts';
import type { WebhookEvent } from './events.ts';
import {
  addWebhook,
  findWebhook,
  listWebhooks,
  MOST_WEBHOOKS,
  removeWebhook,
  testWebhook,
  unlistedOf,
} from './receivers.ts';
import { readReceiverAddress, secretText } from './send.ts';

export function define(program: Command, { env }: CommandContext): void {
  const webhook = program
    .command('webhook')
    .description('webhooks of organizations, see docs/notifications.md');
  addChange(webhook, 'add', 'add a webhook, and print its signing secret once')
    .requiredOption(...ORG)
    .requiredOption('--url <url>', 'address of the receiver, https://…')
    .option(
      '--events <events>',
      'clusters, prices, savings, stock, restocked and lifecycle, separated by commas (default: clusters,prices)',
    )
    .option('--threshold <amount>', 'smallest saving per month of a cluster, for the event savings')
    .option('--machines <ids>', 'ids of machines, separated by commas, for the event restocked')
    .action((options: AddOptions) => webhookAdd(env(), options));
  add(webhook, 'list', 'show the webhooks of an organization, and how their last messages went')
    .requiredOption(...ORG)
    .action((options: OfOrganization) => webhookList(env(), options));
  const WEBHOOK = ['<webhook>', 'the number that `webhook list` shows'] as const;
  const webhookId = (id: string) => readId(id, 'webhook', '`fleetbook webhook list` shows');
  addChange(webhook, 'delete', 'delete a webhook, its secret and its waiting messages')
    .argument(...WEBHOOK)
    .requiredOption(...ORG)
    .action((id: string, options: ChangingOf) => webhookRemove(env(), webhookId(id), options));
  addChange(webhook, 'test', 'send a test message to a webhook at once')
    .argument(...WEBHOOK)
    .requiredOption(...ORG)
    .action((id: string, options: ChangingOf) => webhookTest(env(), webhookId(id), options));
}

interface AddOptions extends ChangingOf {
  readonly url: string;
  readonly events?: string;
  readonly threshold?: string;
  readonly machines?: string;
}

async function webhookAdd(env: Environment, options: AddOptions): Promise<void> {
  const given = readArguments(newWebhook, options);
  await using database = openDatabase(env);
  const by = decider(database, options);
  const organization = await existingOrganization(database.db, options.org);
  const unlisted = given.machines && (await unlistedOf(database.db, given.machines));
  if (unlisted !== undefined)
    throw new CommandFailure(
      `--machines has ${unlisted}, which no catalogue lists; find ids with: fleetbook machines`,
    );
  const added = await addWebhook(database.db, organization, given, by);
  if (added === undefined)
    throw new CommandFailure(
      `organization ${organization.slug} has ${MOST_WEBHOOKS} webhooks, the most it can have; remove one first: fleetbook webhook list --org ${organization.slug}`,
    );
  const { id, secret } = added;
  if (options.json) return printJson({ id, secret: secretText(secret), events: given.events });
  print(
    `webhook ${id} of ${organization.slug} gets ${given.events.join(' and ')}; its signing secret is shown only now:`,
  );
  print(secretText(secret));
}

async function webhookList(env: Environment, { org, json }: OfOrganization): Promise<void> {
  await using database = openDatabase(env);
  const organization = await existingOrganization(database.db, org);
  const webhooks = await listWebhooks(database.db, organization.id);
  if (json) return printJson(webhooks);
  if (webhooks.length === 0)
    return print(`${org} has no webhook; add one: fleetbook webhook add --org ${org} --url https://…`);
  const now = new Date();
  print(
    alignedTable(
      ['ID', 'RECEIVER', 'EVENTS', 'CREATED', 'WAITING', 'LAST DELIVERY', 'LAST ERROR'],
      webhooks.map(({ id, origin, createdAt, waiting, deliveredAt, lastError, ...webhook }) => [
        String(id),
        origin,
        webhook.events.map((event) => eventInWords(event, webhook)).join(', '),
        ago(createdAt, now),
        String(waiting),
        deliveredAt === null ? 'none yet' : ago(deliveredAt, now),
        lastError ?? '',
      ]),
    ),
  );
}

function eventInWords(
  event: WebhookEvent,
  { threshold, machines }: { readonly threshold: string | null; readonly machines: readonly number[] | null },
): string {
  if (event === 'savings') return `savings from ${threshold}`;
  return event === 'restocked' ? `restocked ${machines?.join(' ')}` : event;
}

async function webhookRemove(env: Environment, id: number, options: ChangingOf): Promise<void> {
  await using database = openDatabase(env);
  const by = decider(database, options);
  const organization = await existingOrganization(database.db, options.org);
  if (!(await removeWebhook(database.db, organization, id, by))) throw noWebhook(id, organization);
  if (options.json) printJson({ webhook: id, removed: true });
  else print(`webhook ${id} of ${organization.slug} is removed`);
}

async function webhookTest(env: Environment, id: number, options: ChangingOf): Promise<void> {
  await using database = openDatabase(env);
  const by = decider(database, options);
  const organization = await existingOrganization(database.db, options.org);
  const webhook = await findWebhook(database.db, id, organization.id);
  if (webhook === undefined) throw noWebhook(id, organization);
  const error = await testWebhook(database.db, webhook, organization, by);
  if (error !== undefined) throw new CommandFailure(`webhook ${id} did not accept the message: ${error}`);
  if (options.json) printJson({ webhook: id, delivered: true });
  else print(`webhook ${id} accepted the message`);
}

const noWebhook = (id: number, { slug }: Organization): CommandFailure =>
  new CommandFailure(`${slug} has no webhook ${id}; see: fleetbook webhook list --org ${slug}`);

const DEFAULT_EVENTS = 'clusters,prices';

/** Machines that one webhook may name. */
const MOST_MACHINES = 100;

const newWebhook = z
  .object({
    url: z.string().transform((text, context) => {
      const url = readReceiverAddress(text);
      if (!('problem' in url)) return url;
      context.addIssue({ code: 'custom', message: url.problem });
      return z.NEVER;
    }),
    events: z
      .string()
      .default(DEFAULT_EVENTS)
      .transform((list) => [...new Set(list.split(',').map((each) => each.trim()))])
      .pipe(
        z.array(
          z.enum(WEBHOOK_EVENTS, {
            error: ({ input }) => `has "${input}"; the events are ${WEBHOOK_EVENTS.join(', ')}`,
          }),
        ),
      ),
    threshold: z
      .string()
      .refine((text) => /^\d{1,12}(\.\d{1,6})?$/.test(text) && Number(text) > 0, {
        error: ({ input }) => `must be an amount above 0, e.g. 50 or 12.50; it is "${input}"`,
      })
      .optional(),
    machines: z
      .string()
      .transform((list, context) => {
        const texts = list.split(',').map((each) => each.trim());
        const issue = (message: string) => {
          context.addIssue({ code: 'custom', message });
          return z.NEVER;
        };
        const bad = texts.find((text) => !/^[1-9]\d{0,8}$/.test(text));
        if (bad !== undefined) return issue(`has "${bad}", which is no id; give ids of machines, e.g. 17,21`);
        const repeated = texts.find((text, i) => texts.indexOf(text) < i);
        if (repeated !== undefined) return issue(`has ${repeated} twice; name each machine once`);
        if (texts.length > MOST_MACHINES)
          return issue(
            `has ${texts.length} machines; a webhook has at most ${MOST_MACHINES}, add another one`,
          );
        return texts.map(Number);
      })
      .optional(),
  })
  .superRefine(({ events, machines }, context) => {
    if (events.includes('restocked') === (machines !== undefined)) return;
    const message =
      machines === undefined
        ? 'is missing; give the machines whose return is an event, e.g. --machines 17,21'
        : 'is for the event restocked; add it: --events clusters,prices,restocked';
    context.addIssue({ code: 'custom', path: ['machines'], message });
  })
  .superRefine(({ events, threshold }, context) => {
    if (events.includes('savings') === (threshold !== undefined)) return;
    const message =
      threshold === undefined
        ? 'is missing; give the smallest saving per month that is an event, e.g. --threshold 50'
        : 'is for the event savings; add it: --events clusters,prices,savings';
    context.addIssue({ code: 'custom', path: ['threshold'], message });
  });
