/** Carries out the operations of a history. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { createOrganization, deleteOrganization } from '../../src/db/organizations.ts';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { SCOPES } from '../../src/domain/scope.ts';
import { cyclic } from '../support/random.ts';
import { MACHINE_KEYS, type Model, type Organization, SLUGS, type Token } from './model.ts';
import type { Operation } from './operations.ts';
import type { Servers } from './servers.ts';
import { SOURCES, type World, WrongAnswer } from './world.ts';

const STATUSES = ['Active', 'Stopped', 'Updating', 'Failed'] as const;
export const FIRST_ORGANIZATIONS = ['acme', 'globex'] as const;
/** It is never deleted: a guard would hold an empty list. */
const ALWAYS_THERE = `${FIRST_ORGANIZATIONS[0]}/primary`;

export class Actions {
  readonly #world: World;
  readonly #servers: Servers;
  readonly #model: Model;

  constructor(world: World, servers: Servers) {
    this.#world = world;
    this.#servers = servers;
    this.#model = world.model;
  }

  /** @throws WrongAnswer, or the error of a broken server */
  async do({ does, pick, value }: Operation): Promise<void> {
    const { machines, clusters, organizations, tokens } = this.#model;
    const world = this.#world;
    const servers = this.#servers;
    const organization = cyclic(organizations, pick);
    const machine = cyclic([...machines.rows.keys()], pick);
    const row = machines.rows.get(machine) ?? { price: value, isListed: true };
    const kind = pick % 2 === 0 ? 'machines' : 'clusters';
    const cluster = `${organization.slug}/${cyclic(SLUGS, value)}`;
    switch (does) {
      case 'reprice':
        machines.set(machine, { ...row, price: value });
        return;
      case 'withdraw':
        machines.set(machine, { ...row, isListed: false });
        return;
      case 'return':
        machines.set(machine, { price: value, isListed: true });
        return;
      case 'add machine': {
        const missing = MACHINE_KEYS.filter((key) => !machines.rows.has(key));
        if (missing.length > 0) machines.set(cyclic(missing, pick), { price: value, isListed: true });
        return;
      }
      case 'make cluster':
      case 'change cluster':
        if (does === 'change cluster' && !clusters.rows.has(cluster)) return;
        clusters.set(cluster, {
          name: `${cluster} ${value}`,
          status: cyclic(STATUSES, value),
          shards: 1 + (value % 5),
        });
        return;
      case 'delete cluster':
        if (clusters.rows.has(cluster) && cluster !== ALWAYS_THERE) clusters.set(cluster, undefined);
        return;
      case 'sync':
        if (await world.sync(kind)) await world.publish();
        return;
      case 'sync by queue':
        world.worker.run(SOURCES[kind]);
        return;
      case 'make token':
        if (organization.deleteBegun === undefined) await this.#makeToken(organization, value % 3 > 0);
        return;
      case 'revoke token':
        await this.revoke(cyclic(tokens, pick));
        return;
      case 'make organization':
        await this.makeOrganization(`org-${value}`);
        return;
      case 'delete organization':
        // The first organization stays, so that there is always a valid token.
        await this.#deleteOrganization(cyclic(organizations.slice(1), pick));
        return;
      case 'restart reader':
        // The history restarts it after the round: no request is open then.
        return;
      case 'start from disk':
        // The reader starts next, and has only its disk.
        servers.hangDatabase();
        await servers.cache.hang();
        return;
      case 'restart worker':
        await world.worker.stop('SIGTERM');
        world.worker.start();
        return;
      case 'kill worker':
        await world.worker.stop('SIGKILL');
        world.worker.start();
        return;
      case 'kill cache':
        await servers.cache.kill();
        return;
      case 'hang cache':
        await servers.cache.hang();
        return;
      case 'flush cache':
        if (!servers.cache.broken) await servers.cache.flush();
        servers.noteTrouble();
        return;
      case 'publish unheard':
        machines.set(machine, { ...row, price: value });
        if (servers.cache.broken || !(await world.sync('machines'))) return;
        await Promise.all([servers.cache.cutStreams(), world.publish()]);
        servers.noteTrouble();
        return;
      case 'evict stream':
        if (!servers.cache.broken) await servers.cache.evictStreams();
        return;
      case 'remember cache':
        if (!servers.cache.broken) await servers.cache.remember();
        return;
      case 'cache goes back':
        if (!servers.cache.broken) await servers.cache.goBack();
        servers.noteTrouble();
        return;
      case 'kill queue':
        await servers.queue.kill();
        return;
      case 'hang queue':
        await servers.queue.hang();
        return;
      case 'kill PostgreSQL':
        await servers.killDatabase();
        return;
      case 'hang PostgreSQL':
        servers.hangDatabase();
        return;
      case 'cut PostgreSQL':
        servers.cutDatabase();
        return;
      case 'pass time':
        await sleep(value * 2);
        return;
      case 'heal':
        await servers.heal();
        world.worker.start();
        return;
    }
  }

  async makeOrganization(slug: string): Promise<void> {
    const { db } = this.#world.hand.store;
    const made = await createOrganization(db, slug, slug);
    if (!made) return;
    const organization: Organization = { slug, id: made.id, deleteBegun: undefined };
    this.#model.organizations.push(organization);
    await this.#makeToken(organization, true);
    await this.#makeToken(organization, false);
  }

  async #makeToken(organization: Organization, seesClusters: boolean): Promise<void> {
    const scopes = seesClusters ? SCOPES : (['machines:read'] as const);
    const { id, token } = await createToken(this.#world.hand.store.db, {
      organizationId: organization.id,
      scopes,
    });
    this.#model.tokens.push({
      id,
      text: token,
      organization,
      seesClusters,
      madeAt: performance.now(),
      // A token that is made while its organization is deleted is deleted with it.
      revokeBegun: organization.deleteBegun,
      revokedAt: undefined,
    });
  }

  /** Revokes a token. It may be revoked already. */
  async revoke(token: Token): Promise<void> {
    token.revokeBegun ??= performance.now();
    await revokeToken(this.#world.hand.store.db, token.id);
    token.revokedAt ??= performance.now();
  }

  async #deleteOrganization(organization: Organization): Promise<void> {
    const now = performance.now();
    organization.deleteBegun ??= now;
    const own = this.#model.tokens.filter((token) => token.organization === organization);
    for (const token of own) token.revokeBegun ??= now;
    await deleteOrganization(this.#world.hand.store.db, organization.slug);
    for (const token of own) token.revokedAt ??= performance.now();
  }

  /** Reads the ids of the database. @throws WrongAnswer if an answer had another id */
  async learnIds(): Promise<void> {
    const rows = await this.#world.hand.store.sql<
      { id: number; region: string; regionId: number; name: string }[]
    >`
      select m.id, r.code as region, r.id as "regionId", m.name from machines m join regions r on r.id = m.region_id`;
    for (const { id, region, regionId, name } of rows) {
      this.#model.regionIds.set(region, regionId);
      const key = `${region}/${name}`;
      const known = this.#model.machineIds.get(key);
      if (known !== undefined && known !== id)
        throw new WrongAnswer(`${key} has the id ${id}, and was ${known}`);
      this.#model.machineIds.set(key, id);
    }
  }
}
