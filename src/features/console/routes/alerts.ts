/** Alerts: the rules, what is firing, what was sent to whom; and a message sent again, or one that tests a webhook. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Sql } from '../../../db/connection/client.ts';
import type { Decider } from '../../../domain/operator.ts';
import { deciderOf } from '../../../ops/access.ts';
import {
  BadRequest,
  Conflict,
  choiceOf,
  idOf,
  NotFound,
  type Parameters,
  reasonOf,
  textOf,
  windowOf,
} from '../../../ops/parameters.ts';
import { SNOOZE_FORMS, snoozeSpan } from '../../alerts/acknowledgement.ts';
import {
  type Acknowledged,
  alertRecords,
  type DeliveryRecord,
  findDeliveries,
  resolvedAlerts,
} from '../../alerts/queries.ts';
import type { AlertsAnswer, DeliveriesAnswer, ShownDelivery } from './api.ts';

/** What is configured, and the functions behind `fleetbook alert`. */
export interface ConsoleAlerts extends Pick<AlertsAnswer, 'rules' | 'repeatHours' | 'webhooks'> {
  /** Acknowledges an open alert, until it ends unless `snoozeMs` says when reminders are sent again. */
  acknowledge(
    alert: number,
    snoozeMs: number | undefined,
    decider: Decider & { readonly reason: string },
  ): Promise<Acknowledged>;
  /** Puts a message at the end of its webhook's line. @returns the webhook; undefined for an unknown delivery */
  resend(delivery: number, decider: Decider): Promise<string | undefined>;
  /** Sends a message without any alert. @returns why it was not taken; undefined when it was */
  test(webhook: string, decider: Decider): Promise<string | undefined>;
}

/** Alerts that are over, as far as they are shown. */
const OVER = 50;
/** Of each message. */
const SUMMARIES = 3;
const STATES = ['waiting', 'delivered', 'given up'] as const;

/** @param changed called after an acknowledgement */
export function addAlerts(
  api: FastifyInstance,
  sql: Sql,
  configured: ConsoleAlerts,
  changed: () => Promise<void>,
): void {
  const { rules, repeatHours, webhooks } = configured;

  api.get('/alerts', async (): Promise<AlertsAnswer> => {
    const [firing, over] = await Promise.all([
      alertRecords(sql, { isOpenOnly: true, limit: undefined }),
      resolvedAlerts(sql, OVER),
    ]);
    return { rules, repeatHours, webhooks, firing, over };
  });
  api.get('/alerts/deliveries', async (request): Promise<DeliveriesAnswer> => {
    const query = request.query as Parameters;
    const state = choiceOf(query, 'state', STATES);
    const found = await findDeliveries(sql, { search: textOf(query, 'q'), state, ...windowOf(query) });
    return { total: found.total, rows: found.rows.map(shown) };
  });
  const acknowledge = async (request: FastifyRequest, snoozeMs?: number) => {
    const id = idOf(request.params, 'alert', 'alert');
    const reason = reasonOf(request.body);
    const done = await configured.acknowledge(id, snoozeMs, { ...deciderOf(request), reason });
    if (done.outcome === 'unknown') throw new NotFound(`there is no alert ${id}`);
    if (done.outcome === 'over') throw new Conflict(`alert ${id} is over; load this page again`);
    await changed();
    return { alert: id, acknowledgement: done.acknowledgement };
  };
  api.post('/alerts/:alert/acknowledge', (request) => acknowledge(request));
  api.post('/alerts/:alert/snooze', async (request) => {
    const { for: given } = (request.body ?? {}) as { for?: unknown };
    const snoozeMs = typeof given === 'string' ? snoozeSpan(given) : undefined;
    if (snoozeMs === undefined) throw new BadRequest('for', `must be ${SNOOZE_FORMS}`);
    return acknowledge(request, snoozeMs);
  });
  api.post('/alerts/deliveries/:delivery/resend', async (request) => {
    const id = idOf(request.params, 'delivery', 'delivery');
    const webhook = await configured.resend(id, deciderOf(request));
    if (webhook === undefined) throw new NotFound(`there is no delivery ${id}; it may be older than 90 days`);
    return { delivery: id, webhook };
  });
  api.post('/alerts/webhooks/:webhook/test', async (request) => {
    const { webhook: id } = request.params as { webhook: string };
    if (!webhooks.some((each) => each.id === id)) throw new NotFound(`no webhook ${id} is configured here`);
    const problem = await configured.test(id, deciderOf(request));
    return { webhook: id, problem: problem ?? null };
  });
}

/** The body is in whatever form it had when it was written. */
function shown({ body, ...delivery }: DeliveryRecord): ShownDelivery {
  const { type, data } = body as { type?: string; data?: { alerts?: readonly { summary?: string }[] } };
  const alerts = data?.alerts ?? [];
  return {
    ...delivery,
    type: type ?? 'unknown',
    alerts: alerts.length,
    summaries: alerts.slice(0, SUMMARIES).map(({ summary }) => summary ?? ''),
  };
}
