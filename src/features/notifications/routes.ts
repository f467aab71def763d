/** The routes of alerts in the operators' server. */

import type { FastifyRequest } from 'fastify';
import { reasoned, snoozedAlert } from '../../app/actions/inputs.ts';
import type { OpsContext } from '../../app/feature.ts';
import { acknowledgeAlert, alertRecords, resolvedAlerts } from '../../db/alerts.ts';
import { type AlertRecord, sourceOfAlert } from '../../domain/alert.ts';
import { deciderOf } from '../../ops/access.ts';
import type { OpsPart } from '../../ops/feature-routes.ts';
import { Conflict, choiceOf, idOf, NotFound, readBody, textOf, windowOf } from '../../ops/parameters.ts';
import { type AlertMessage, actionOf } from './alert-messages.ts';
import type { AlertsAnswer, DeliveriesAnswer, DeliveryRecord, ShownAlert, ShownDelivery } from './answers.ts';
import { findDeliveries, sendAgain } from './messages.ts';
import { testReceiver } from './receivers.ts';
import { alertRules, rulesInWords } from './rules.ts';

const RESOLVED = 50;
const SUMMARIES = 3;
const STATES = ['waiting', 'delivered', 'given up'] as const;

export function alertsPart({ config, store: { db }, kinds }: OpsContext): OpsPart {
  const { webhooks, repeatHours, ...rules } = alertRules(config);
  const configured = {
    rules: Object.entries({ ...rulesInWords(rules), ...kinds }).map(([kind, opens]) => ({ kind, opens })),
    repeatHours,
    // Without the address, which may contain a secret.
    webhooks: webhooks.map(({ id, format, secret, kinds }) => ({
      id,
      format,
      isSigned: secret !== undefined,
      kinds: kinds ?? null,
    })),
  };
  return {
    addApi(api, { changed }) {
      api.get('/alerts', async (): Promise<AlertsAnswer> => {
        const [firing, over] = await Promise.all([
          alertRecords(db, { isOpenOnly: true, limit: undefined }),
          resolvedAlerts(db, RESOLVED),
        ]);
        return { ...configured, firing: firing.map(withSource), over: over.map(withSource) };
      });
      api.get('/alerts/deliveries', async (request): Promise<DeliveriesAnswer> => {
        const { query } = request;
        const state = choiceOf(query, 'state', STATES);
        const found = await findDeliveries(db, { search: textOf(query, 'q'), state, ...windowOf(query) });
        return { total: found.total, rows: found.rows.map(shown) };
      });
      const acknowledge = async (request: FastifyRequest, snoozeMs?: number) => {
        const id = idOf(request.params, 'alert', 'alert');
        const { reason } = readBody(reasoned, request.body);
        const done = await acknowledgeAlert(db, id, snoozeMs, { ...deciderOf(request), reason });
        if (done === 'unknown') throw new NotFound(`there is no alert ${id}`);
        if (done === 'over') throw new Conflict(`alert ${id} is resolved; reload this page`);
        await changed();
        return { alert: id, acknowledgement: done.acknowledgement };
      };
      api.post('/alerts/:alert/acknowledge', (request) => acknowledge(request));
      api.post('/alerts/:alert/snooze', async (request) => {
        const { for: snoozeMs } = readBody(snoozedAlert, request.body);
        return acknowledge(request, snoozeMs);
      });
      api.post('/alerts/deliveries/:delivery/resend', async (request) => {
        const id = idOf(request.params, 'delivery', 'delivery');
        const webhook = await sendAgain(db, id, deciderOf(request));
        if (webhook === undefined)
          throw new NotFound(`there is no delivery ${id}; it may be older than 90 days`);
        return { delivery: id, webhook };
      });
      api.post('/alerts/webhooks/:webhook/test', async (request) => {
        const { webhook: id } = request.params as { webhook: string };
        const webhook = webhooks.find((each) => each.id === id);
        if (webhook === undefined) throw new NotFound(`no webhook ${id} is configured here`);
        const problem = await testReceiver(db, webhook, deciderOf(request));
        return { webhook: id, problem: problem ?? null };
      });
    },
  };
}

const withSource = (alert: AlertRecord): ShownAlert => ({
  ...alert,
  source: sourceOfAlert(alert) ?? null,
  path: actionOf(alert, alert.details).path,
});

function shown({ body, ...delivery }: DeliveryRecord): ShownDelivery {
  const { type, data } = body as AlertMessage;
  return {
    ...delivery,
    type,
    alerts: data.alerts.length,
    summaries: data.alerts.slice(0, SUMMARIES).map(({ summary }) => summary),
  };
}
