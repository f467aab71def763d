/** The commands of `fleetbook alert` with their arguments and options. Their code is loaded when they are called. */
import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import { type PageOptions, readId } from '../../cli/terminal/arguments.ts';
import {
  ALL_ROWS,
  add,
  addChange,
  BY,
  type Changing,
  JSON_ROWS,
  LIMIT,
  REASON,
} from '../../cli/terminal/command-parts.ts';

export function addAlertCommands(program: Command, { env, config }: CommandContext): void {
  const load = () => import('./commands.ts');
  const alert = program.command('alert').description('what operators are told of, and webhooks');
  alert
    .command('list')
    .description('show the alerts that are open')
    .option('--closed', 'also those that are resolved')
    .option(...LIMIT('alerts'))
    .option(...ALL_ROWS)
    .option(...JSON_ROWS)
    .action(async (options: PageOptions & { closed?: boolean }) => (await load()).alertList(env(), options));
  alert
    .command('deliveries')
    .description('show what was sent to webhooks')
    .option(...LIMIT('messages'))
    .option(...ALL_ROWS)
    .option(...JSON_ROWS)
    .action(async (options: PageOptions) => (await load()).alertDeliveries(env(), options));
  const ALERT = ['<alert>', 'the number that `alert list` shows'] as const;
  const alertId = (id: string) => readId(id, 'alert', '`fleetbook alert list` shows');
  add(alert, 'acknowledge', 'send no reminders of an open alert until it ends')
    .argument(...ALERT)
    .requiredOption(...REASON)
    .option(...BY)
    .action(async (id: string, options: Changing) =>
      (await load()).alertAcknowledge(env(), alertId(id), options),
    );
  add(alert, 'snooze', 'send no reminders of an open alert for some time')
    .argument(...ALERT)
    .requiredOption('--for <span>', 'e.g. 30m, 4h or 7d; at most 30d')
    .requiredOption(...REASON)
    .option(...BY)
    .action(async (id: string, options: Changing & { for: string }) =>
      (await load()).alertAcknowledge(env(), alertId(id), options),
    );
  addChange(alert, 'resend', 'send a message once more')
    .argument('<delivery>', 'the number that `alert deliveries` shows')
    .action(async (id: string, options: Changing) =>
      (await load()).alertResend(
        env(),
        readId(id, 'delivery', '`fleetbook alert deliveries` shows'),
        options,
      ),
    );
  addChange(alert, 'test', 'send a message without an alert to a webhook, at once')
    .argument('<webhook>', 'its id; default is that of ALERT_WEBHOOK_URL')
    .action(async (id: string, options: Changing) => (await load()).alertTest(await config(), id, options));
}
