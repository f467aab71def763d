/** What the console shows and does of alerts: the functions behind `fleetbook alert`. */

import type { Disposer } from '../../app/disposer.ts';
import type { Config } from '../../config/config.ts';
import { databaseUrls } from '../../config/settings.ts';
import { audit } from '../../db/audit.ts';
import { openStore, type Store } from '../../db/connection/connect.ts';
import { post } from '../alerts/deliver.ts';
import { sendAgain } from '../alerts/deliveries.ts';
import { newMessageId } from '../alerts/evaluate.ts';
import { testMessage } from '../alerts/message.ts';
import { acknowledgeAlert } from '../alerts/queries.ts';
import { rulesInWords, type Webhook } from '../alerts/rules.ts';
import type { ConsoleAlerts } from './routes/alerts.ts';

/** Connects when somebody first does something; `closing` closes it. */
export function consoleAlerts(config: Config, closing: Disposer): ConsoleAlerts {
  const { webhooks, repeatHours } = config.alerts;
  let opened: Store | undefined;
  const db = () => {
    opened ??= closing.use(openStore({ ...databaseUrls(config), role: 'worker', connections: 1 }));
    return opened.db;
  };
  return {
    rules: Object.entries(rulesInWords(config.alerts)).map(([kind, opens]) => ({ kind, opens })),
    repeatHours,
    webhooks: webhooks.map(shown),
    acknowledge: (id, snoozeMs, decider) => acknowledgeAlert(db(), id, snoozeMs, decider),
    resend: (id, decider) => sendAgain(db(), id, decider),
    async test(id, decider) {
      const webhook = webhooks.find((each) => each.id === id);
      if (webhook === undefined) throw new Error(`webhook ${id} is not configured`);
      // Before it is sent, so that none is sent without a record.
      await audit(db(), decider, { action: 'alert.test', subject: { kind: 'webhook', id } });
      const now = new Date();
      return post(webhook, newMessageId(), testMessage(now), now.getTime());
    },
  };
}

/** Without its address, which may hold a secret. */
const shown = ({ id, format, secret, kinds }: Webhook) => ({
  id,
  format,
  isSigned: secret !== undefined,
  kinds: kinds ?? null,
});
