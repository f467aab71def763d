import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import {
  add,
  addChange,
  type ChangingOf,
  type OfOrganization,
  ORG,
  readId,
} from '../../cli/terminal/options.ts';
import type { AddOptions } from './run-webhook-commands.ts';

export function addWebhookCommands(program: Command, { env }: CommandContext): void {
  const load = () => import('./run-webhook-commands.ts');
  const webhook = program.command('webhook').description('webhooks of organizations, see docs/webhooks.md');
  addChange(webhook, 'add', 'add a webhook, and print its signing secret once')
    .requiredOption(...ORG)
    .requiredOption('--url <url>', 'address of the receiver, https://…')
    .option(
      '--events <events>',
      'clusters, prices, savings and stock, separated by commas (default: clusters,prices)',
    )
    .option('--threshold <amount>', 'smallest saving per month of a cluster, for the event savings')
    .action(async (options: AddOptions) => (await load()).webhookAdd(env(), options));
  add(webhook, 'list', 'show the webhooks of an organization, and how their last messages went')
    .requiredOption(...ORG)
    .action(async (options: OfOrganization) => (await load()).webhookList(env(), options));
  const WEBHOOK = ['<webhook>', 'the number that `webhook list` shows'] as const;
  const webhookId = (id: string) => readId(id, 'webhook', '`fleetbook webhook list` shows');
  addChange(webhook, 'delete', 'delete a webhook, its secret and its waiting messages')
    .argument(...WEBHOOK)
    .requiredOption(...ORG)
    .action(async (id: string, options: ChangingOf) =>
      (await load()).webhookRemove(env(), webhookId(id), options),
    );
  addChange(webhook, 'test', 'send a test message to a webhook at once')
    .argument(...WEBHOOK)
    .requiredOption(...ORG)
    .action(async (id: string, options: ChangingOf) =>
      (await load()).webhookTest(env(), webhookId(id), options),
    );
}
