/** A client with a copy: it lists everything once, and then applies the changes. */
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

/** Returns the fields of a machine in a list: changes have facts too. */
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

/** An answer after which a client cannot continue. */
export class Unanswered extends Error {
  override readonly name = 'Unanswered';
  readonly status: number;

  constructor(path: string, status: number, body: string) {
    super(`${path}: ${status} ${body}`);
    this.status = status;
  }
}

export type FetchPath = (path: string) => Promise<{ readonly status: number; readonly body: string }>;

export class Copy {
  readonly machines = new Map<number, unknown>();
  readonly clusters = new Map<string, unknown>();
  /** How often the client listed everything again because changes were deleted. */
  relisted = 0;
  next = '';
  readonly #fetchPath: FetchPath;

  constructor(fetchPath: FetchPath) {
    this.#fetchPath = fetchPath;
  }

  /** @throws Unanswered unless the answer is 200 */
  async #get<T>(path: string): Promise<T> {
    const { status, body } = await this.#fetchPath(path);
    if (status !== 200) throw new Unanswered(path, status, body);
    return JSON.parse(body) as T;
  }

  async isRefused(): Promise<boolean> {
    return (await this.#fetchPath('/v1/changes')).status === 401;
  }

  /** Takes a cursor, then lists. @param between runs after the cursor is taken */
  async begin(between: () => Promise<unknown> = async () => {}): Promise<this> {
    const { changes, next } = await this.#get<Page>('/v1/changes');
    if (changes.length > 0) throw new Error('a start has no changes');
    await between();
    await this.list();
    this.next = next;
    return this;
  }

  async list(): Promise<void> {
    this.machines.clear();
    this.clusters.clear();
    const providers = await this.#get<{ id: number; regions: { id: number }[] }[]>('/v1/providers');
    for (const { id, regions } of providers)
      for (const region of regions)
        for (const machine of await this.#get<(Entity & Record<string, unknown>)[]>(
          `/v1/machines?provider=${id}&region=${region.id}`,
        ))
          this.machines.set(machine.id, listed(machine));
    // A token may lack the scope.
    const clusters = await this.#get<Entity[]>('/v1/clusters').catch((error: unknown) => {
      if (error instanceof Unanswered && error.status === 403) return [];
      throw error;
    });
    for (const cluster of clusters) this.clusters.set(cluster.slug, cluster);
  }

  /** Reads all changes in pages, and applies each. Lists everything again if changes were deleted. */
  async follow(limit = 100): Promise<this> {
    for (let more = true; more; ) {
      const path = `/v1/changes?after=${this.next}&limit=${limit}`;
      const { status, body } = await this.#fetchPath(path);
      if (status !== 200 && status !== 410) throw new Unanswered(path, status, body);
      const page = JSON.parse(body) as Page;
      if (status === 410) {
        this.relisted += 1;
        await this.list();
      } else {
        for (const change of page.changes) this.apply(change);
        more = page.more;
      }
      this.next = page.next;
    }
    return this;
  }

  apply({ machine, machine_id, cluster, slug }: Change): void {
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
