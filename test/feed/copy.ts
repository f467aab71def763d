/** A client that keeps a copy: it lists everything once, and then does as the changes say. */
import type { FastifyInstance } from 'fastify';
import { expect } from 'vitest';

interface Entity {
  readonly id: number;
  readonly slug: string;
}

interface Change {
  readonly id: string;
  readonly type: string;
  readonly machine?: Entity;
  readonly machine_id?: number;
  readonly cluster?: Entity;
  readonly slug?: string;
}

export interface Page {
  readonly changes: readonly Change[];
  readonly next: string;
  readonly more: boolean;
}

/** What a list shows of a machine: changes tell the facts as well. */
const listed = ({
  id,
  name,
  ram,
  cpu,
  price,
  ram_unit,
  provider,
  region,
}: Record<string, unknown>): unknown => ({ id, name, ram, cpu, price, ram_unit, provider, region });

export class Copy {
  readonly machines = new Map<number, unknown>();
  readonly clusters = new Map<string, unknown>();
  readonly types: string[] = [];
  next = '';
  readonly #app: FastifyInstance;
  readonly #token: string;

  constructor(app: FastifyInstance, token: string) {
    this.#app = app;
    this.#token = token;
  }

  async get<T>(path: string, status = 200): Promise<T> {
    const answer = await this.#app.inject({
      path,
      headers: { authorization: `Bearer ${this.#token}`, host: 'test' },
    });
    expect(answer.statusCode, answer.body).toBe(status);
    return answer.json<T>();
  }

  /** Takes a cursor, then lists. `between` happens after the cursor was taken. */
  async begin(between: () => Promise<unknown> = async () => {}): Promise<this> {
    const page = await this.get<Page>('/v1/changes');
    expect(page.changes).toEqual([]);
    await between();
    await this.list();
    this.next = page.next;
    return this;
  }

  async list(): Promise<void> {
    this.machines.clear();
    this.clusters.clear();
    const providers = await this.get<{ id: number; regions: { id: number }[] }[]>('/v1/providers');
    for (const { id, regions } of providers)
      for (const region of regions)
        for (const machine of await this.get<(Entity & Record<string, unknown>)[]>(
          `/v1/machines?provider=${id}&region=${region.id}`,
        ))
          this.machines.set(machine.id, listed(machine));
    for (const cluster of await this.get<Entity[]>('/v1/clusters')) this.clusters.set(cluster.slug, cluster);
  }

  /** Reads the changes there are, so many at a time, and applies each. */
  async follow(limit = 100): Promise<this> {
    for (let more = true; more; ) {
      const page = await this.get<Page>(`/v1/changes?after=${this.next}&limit=${limit}`);
      for (const change of page.changes) this.apply(change);
      ({ next: this.next, more } = page);
    }
    return this;
  }

  apply({ type, machine, machine_id, cluster, slug }: Change): void {
    this.types.push(type);
    if (machine) this.machines.set(machine.id, listed({ ...machine }));
    if (machine_id !== undefined) this.machines.delete(machine_id);
    if (cluster) this.clusters.set(cluster.slug, cluster);
    if (slug !== undefined) this.clusters.delete(slug);
  }

  get state(): unknown {
    return {
      machines: [...this.machines].sort(([a], [b]) => a - b),
      clusters: [...this.clusters].sort(([a], [b]) => (a < b ? -1 : 1)),
    };
  }
}
