import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import {
  add,
  addChange,
  addRows,
  type Changing,
  type PageOptions,
  REASON,
  readId,
  withDecider,
} from '../../cli/terminal/options.ts';

export function addAlertCommands(program: Command, { env, config }: CommandContext): void {
  const load = () => import('./run-commands.ts');
  const alert = program.command('alert').description('alerts, and the messages to webhooks');
  addRows(alert, 'list', 'show the open alerts', 'alerts')
    .option('--closed', 'also resolved alerts')
    .action(async (options: PageOptions & { closed?: boolean }) => (await load()).alertList(env(), options));
  addRows(alert, 'deliveries', 'show the messages to webhooks', 'messages').action(
    async (options: PageOptions) => (await load()).alertDeliveries(env(), options),
  );
  const ALERT = ['<alert>', 'the number that `alert list` shows'] as const;
  const alertId = (id: string) => readId(id, 'alert', '`fleetbook alert list` shows');
  withDecider(add(alert, 'acknowledge', 'send no reminders of an open alert until it ends'))
    .argument(...ALERT)
    .requiredOption(...REASON)
    .action(async (id: string, options: Changing) =>
      (await load()).alertAcknowledge(env(), alertId(id), options),
    );
  withDecider(add(alert, 'snooze', 'send no reminders of an open alert for some time'))
    .argument(...ALERT)
    .requiredOption('--for <span>', 'e.g. 30m, 4h or 7d; at most 30d')
    .requiredOption(...REASON)
    .action(async (id: string, options: Changing & { for: string }) =>
      (await load()).alertAcknowledge(env(), alertId(id), options),
    );
  addChange(alert, 'resend', 'send a message again')
    .argument('<delivery>', 'the number that `alert deliveries` shows')
    .action(async (id: string, options: Changing) =>
      (await load()).alertResend(
        env(),
        readId(id, 'delivery', '`fleetbook alert deliveries` shows'),
        options,
      ),
    );
  addChange(alert, 'test', 'send a test message to a webhook at once')
    .argument('<webhook>', 'its id; `default` is the webhook of ALERT_WEBHOOK_URL')
    .action(async (id: string, options: Changing) => (await load()).alertTest(await config(), id, options));
}
