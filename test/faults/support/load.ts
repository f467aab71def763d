/** Sends requests to both readers at a fixed rate, and compares each answer with the ledger. */
import { Agent, get } from 'node:http';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from '../../../src/db/connection/connect.ts';
import { reprice } from '../../snapshot/rows.ts';
import { until } from '../../support/until.ts';
import { Ledger, type Verdict } from './ledger.ts';
import type { Machine, Organization, Reader, Stack } from './stack.ts';

/** A request of the measured time. */
export interface MeasuredRequest {
  readonly at: number;
  readonly reader: string;
  readonly path: string;
  readonly status: number;
  readonly tier: string | undefined;
  readonly ms: number;
  /** The fault of the answer. */
  readonly wrong: string | undefined;
  /** Why there is no answer: the text of the problem document, or the error of the connection. */
  readonly why: string | undefined;
  /** How far the answer was behind the newest commit (ms). */
  readonly behindMs: number;
  /** Milliseconds from the loss of the shown state to the request; 0 if it is not lost. */
  readonly lostMs: number;
  /** The instant of the newest write that it shows. */
  readonly newest: number;
}

interface Shown {
  readonly subject: string;
  readonly number: number;
}

/** Requests per second to all readers together: FAULT_RATE, or 200. */
const RATE = Number(process.env.FAULT_RATE ?? 200);
/** CI and the system tests share their machine with other work, so a slow answer is no failure there. */
export const IS_SHARED = Boolean(process.env.CI || process.env.FAULTS_IN_BRIEF);
const TICK_MS = 20;
/** Most open requests. A further one is not sent, and counts as an error, so that the generator does not fail first. */
const UNDER_WAY_AT_MOST = 2000;
const DEADLINE_MS = 10_000;
/** An update that no answer shows this long (ms) after the last one is lost. */
const SHOWN_WITHIN_MS = IS_SHARED ? 60_000 : 10_000;
/** Milliseconds between two writes. */
const WRITE_EVERY_MS = 30;

export class Load implements AsyncDisposable {
  readonly ledger = new Ledger();
  readonly finished: MeasuredRequest[] = [];
  /** False: only the worker publishes writes, and checks the database. */
  publishes = true;
  readonly #stack: Stack;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 });
  readonly #timer: NodeJS.Timeout;
  readonly #writing: Promise<void>;
  #underWay = 0;
  #due = 0;
  #last = performance.now();
  #isOver = false;
  /** Subject and number → when its write began, in milliseconds of `performance.now()`. */
  readonly #begun = new Map<string, number>();

  constructor(stack: Stack) {
    this.#stack = stack;
    for (const { id } of stack.machines) this.#first(`machine ${id}`);
    for (const { id } of stack.organizations) this.#first(`cluster ${id}`);
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#writing = this.#write();
  }

  #first(subject: string): void {
    this.ledger.committed(subject, this.ledger.begin(subject));
  }

  #tick(): void {
    const now = performance.now();
    // Late requests are skipped: they would come in one burst.
    this.#due = Math.min(RATE / 10, this.#due + ((now - this.#last) / 1000) * RATE);
    this.#last = now;
    for (; this.#due >= 1; this.#due -= 1) this.#sendNext();
  }

  #sendNext(): void {
    const { readers, organizations, machines, provider } = this.#stack;
    const reader = anyOf(readers);
    const organization = anyOf(organizations);
    const machine = anyOf(machines);
    const share = Math.random();
    if (share < 0.4)
      this.#send(reader, organization, `/v1/machines/${machine.id}`, (body) => [machineIn(body)]);
    else if (share < 0.7)
      this.#send(reader, organization, '/v1/clusters/main', (body) => [clusterIn(body, organization)]);
    else if (share < 0.85)
      this.#send(
        reader,
        organization,
        `/v1/machines?provider=${provider}&region=${machine.regionId}`,
        (body) => listOf(body).map(machineIn),
      );
    else
      this.#send(reader, organization, '/v1/clusters', (body) =>
        listOf(body).map((each) => clusterIn(each, organization)),
      );
  }

  #send(reader: Reader, { token }: Organization, path: string, read: (body: unknown) => Shown[]): void {
    const at = performance.now();
    const done = (status: number, text: string, tier?: string) => {
      const facts = status === 200 ? this.#judge(reader, at, text, read) : NOTHING;
      const why = status === 200 ? undefined : reasonOf(text);
      const ms = performance.now() - at;
      this.finished.push({ at, reader: reader.name, path, status, tier, ms, why, ...facts });
    };
    if (this.#underWay >= UNDER_WAY_AT_MOST) {
      done(0, 'too many are under way');
      return;
    }
    this.#underWay += 1;
    const request = get(reader.url + path, {
      agent: this.#agent,
      timeout: DEADLINE_MS,
      headers: { authorization: `Bearer ${token}` },
    });
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        this.#underWay -= 1;
        done(
          response.statusCode ?? 0,
          Buffer.concat(chunks).toString(),
          String(response.headers['fleetbook-tier']),
        );
      });
    });
    request.on('timeout', () => request.destroy(new Error('no answer in time')));
    request.on('error', ({ message }) => {
      this.#underWay -= 1;
      done(0, message);
    });
  }

  #judge(reader: Reader, at: number, body: string, read: (body: unknown) => Shown[]) {
    let shown: Shown[];
    try {
      shown = read(JSON.parse(body));
    } catch (error) {
      return { ...NOTHING, wrong: String(error) };
    }
    let wrong: string | undefined;
    let behindMs = 0;
    let lostMs = 0;
    let newest = 0;
    for (const { subject, number } of shown) {
      const verdict: Verdict = this.ledger.judge(reader.name, subject, number, at);
      if (verdict !== 'true') wrong ??= `${verdict}: ${subject} is ${number}`;
      behindMs = Math.max(behindMs, this.ledger.age(subject, number, at));
      lostMs = Math.max(lostMs, this.ledger.lostMs(subject, number, at));
      newest = Math.max(newest, this.#begun.get(`${subject} ${number}`) ?? 0);
    }
    return { wrong, behindMs, lostMs, newest };
  }

  async #write(): Promise<void> {
    while (!this.#isOver) {
      await sleep(WRITE_EVERY_MS);
      const isMachine = Math.random() < 0.5;
      const machine: Machine = anyOf(this.#stack.machines);
      const organization: Organization = anyOf(this.#stack.organizations);
      const subject = isMachine ? `machine ${machine.id}` : `cluster ${organization.id}`;
      const number = this.ledger.begin(subject);
      this.#begun.set(`${subject} ${number}`, performance.now());
      try {
        if (isMachine) await reprice(this.#stack.store.sql, machine.id, priceOf(number));
        else await rename(this.#stack, organization, number);
        this.ledger.committed(subject, number);
        if (this.publishes) await this.#stack.publisher.publishDirty();
      } catch {
        await this.#settle(subject, number);
      }
    }
  }

  /** Reads the outcome of writes without an acknowledgement, as soon as PostgreSQL answers again. */
  async #settle(subject: string, number: number): Promise<void> {
    while (!this.#isOver && this.ledger.newest(subject) < number) {
      const held = await this.held().catch(() => undefined);
      if (held) {
        if (held.get(subject) === number) this.ledger.committed(subject, number);
        else this.ledger.neverCommitted(subject, number);
        return;
      }
      await sleep(WRITE_EVERY_MS);
    }
  }

  /** Returns the numbers in PostgreSQL. */
  held(): Promise<Map<string, number>> {
    return heldBy(this.#stack.store.sql);
  }

  /** Returns the finished requests since then. */
  since(instant: number): MeasuredRequest[] {
    return this.finished.filter(({ at }) => at >= instant);
  }

  /** Ends the load. Returns how many committed updates readers do not show, all readers together. */
  async lostUpdates(): Promise<number> {
    await this[Symbol.asyncDispose]();
    const deadline = performance.now() + SHOWN_WITHIN_MS;
    const counts = await Promise.all(this.#stack.readers.map((reader) => this.#unshownBy(reader, deadline)));
    return counts.reduce((a, b) => a + b, 0);
  }

  /** Reads one subject after the other: hundreds of requests at once would be another fault. */
  async #unshownBy({ url }: Reader, deadline: number): Promise<number> {
    const { machines, organizations } = this.#stack;
    const [first] = organizations;
    const shows = async (path: string, token: string | undefined, read: (body: unknown) => Shown) => {
      const response = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } });
      const { subject, number } = read(await response.json());
      return number >= this.ledger.newestLasting(subject);
    };
    const all = [
      ...machines.map(
        ({ id }) =>
          () =>
            shows(`/v1/machines/${id}`, first?.token, machineIn),
      ),
      ...organizations.map(
        (each) => () => shows('/v1/clusters/main', each.token, (body) => clusterIn(body, each)),
      ),
    ];
    let unshown = 0;
    for (const isShown of all) {
      const timeoutMs = Math.max(0, deadline - performance.now());
      // Lost updates are a figure of the row, not an error.
      await until(isShown, { timeoutMs, everyMs: 200 }).catch(() => {
        unshown += 1;
      });
    }
    return unshown;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    clearInterval(this.#timer);
    await this.#writing;
    // Open requests get an answer, or time out.
    await until(() => this.#underWay === 0, { timeoutMs: 2 * DEADLINE_MS });
    this.#agent.destroy();
  }
}

/** Returns the detail of a problem document, or the text. */
function reasonOf(text: string): string {
  try {
    const { detail, title } = JSON.parse(text) as { detail?: string; title?: string };
    return detail ?? title ?? text;
  } catch {
    return text;
  }
}

const NOTHING = { wrong: undefined, behindMs: 0, lostMs: 0, newest: 0 } as const;

/** Machines start with the first number. */
const priceOf = (number: number): string => ((number + 1) / 10_000).toFixed(4);
const numberOf = (price: number): number => Math.round(price * 10_000) - 1;

/** Reads the number of each subject from the database. */
export async function heldBy(sql: Sql): Promise<Map<string, number>> {
  const machines = await sql<{ id: number; price: number }[]>`select id, price::float8 from machines`;
  const clusters = await sql<
    { name: string; id: number }[]
  >`select organization_id as id, name from clusters`;
  return new Map([
    ...machines.map(({ id, price }) => [`machine ${id}`, numberOf(price)] as const),
    ...clusters.map(({ id, name }) => [`cluster ${id}`, Number(name.split(' ')[1])] as const),
  ]);
}

async function rename({ store }: Stack, { id, clusterId }: Organization, number: number): Promise<void> {
  await store.sql`
    with renamed as (update clusters set name = ${`${id} ${number}`} where id = ${clusterId} returning organization_id)
    update organizations set clusters_version = clusters_version + 1
    where id in (select organization_id from renamed)`;
}

function machineIn(body: unknown): Shown {
  const { id, price } = body as { id: number; price: number };
  return { subject: `machine ${id}`, number: numberOf(price) };
}

function clusterIn(body: unknown, { id }: Organization): Shown {
  const [owner, number] = (body as { name: string }).name.split(' ').map(Number);
  if (owner !== id || number === undefined) throw new Error(`another organization's cluster: ${owner}`);
  return { subject: `cluster ${owner}`, number };
}

function listOf(body: unknown): unknown[] {
  if (!Array.isArray(body) || body.length === 0) throw new Error('an empty list');
  return body;
}

function anyOf<T>(all: readonly T[]): T {
  return all[Math.floor(Math.random() * all.length)] as T;
}
