/** Organizations and their people: listed for whoever is signed in, changed by admins. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { publishNow, type Writing } from '../../../app/actions/publish.ts';
import { administration } from '../../../db/administration.ts';
import type { Sql } from '../../../db/connection/client.ts';
import {
  type FoundOrganization,
  type FoundOrganizations,
  findOrganization,
  foundOrganization,
  ORGANIZATION_SORTS,
  type Organization,
  searchOrganizations,
} from '../../../db/organizations.ts';
import { listUsers, type UserName } from '../../../db/users.ts';
import { ORGANIZATION_SLUG } from '../../../domain/names.ts';
import { deciderOf } from '../../../ops/access.ts';
import {
  anyReasonOf,
  BadRequest,
  Conflict,
  choiceOf,
  fieldOf,
  idOf,
  NotFound,
  nameOf,
  type Parameters,
  reasonOf,
  textOf,
  windowOf,
} from '../../../ops/parameters.ts';
import type { ChangedUser, Published, UsersAnswer } from './api.ts';

export interface AdministrationDependencies {
  readonly sql: Sql;
  /** Opens what changes are written and published with, at the first change. */
  openWriter(): Writing;
  readonly now: () => Date;
  /** Called after a change. */
  changed(): Promise<void>;
}

/** Who may change what these routes change. */
export const ADMIN = { config: { access: 'admin' } } as const;

export function addOrganizations(api: FastifyInstance, deps: AdministrationDependencies): void {
  const { sql, openWriter } = deps;
  const changes = (request: FastifyRequest, reason: string | undefined) =>
    administration(openWriter().store.db, deciderOf(request, reason));

  api.get('/organizations', async (request): Promise<FoundOrganizations> => {
    const query = request.query as Parameters;
    return searchOrganizations(sql, {
      text: textOf(query, 'q'),
      deleted: choiceOf(query, 'deleted', ['no', 'yes', 'all']) ?? 'no',
      sort: choiceOf(query, 'sort', ORGANIZATION_SORTS) ?? 'slug',
      descending: choiceOf(query, 'order', ['asc', 'desc']) === 'desc',
      ...windowOf(query),
    });
  });
  api.get('/organizations/:slug', async (request): Promise<FoundOrganization> => {
    const slug = slugOf(request);
    const found = await foundOrganization(sql, slug);
    if (!found) throw noOrganization(slug);
    return found;
  });
  api.get('/organizations/:slug/users', async (request): Promise<UsersAnswer> => {
    const slug = slugOf(request);
    const found = await foundOrganization(sql, slug);
    if (!found) throw noOrganization(slug);
    return { rows: await listUsers(sql, found.id) };
  });
  api.post('/organizations', ADMIN, async (request): Promise<Organization> => {
    const slug = fieldOf(request.body, 'slug') ?? '';
    if (!ORGANIZATION_SLUG.test(slug))
      throw new BadRequest('slug', 'must be 1 to 63 lower-case letters, digits and dashes, e.g. acme');
    const name = nameOf(request.body, 'name') ?? slug;
    const made = await changes(request, anyReasonOf(request.body)).createOrganization(slug, name);
    if (!made)
      throw new Conflict(
        `the slug "${slug}" is taken, perhaps by an organization that was deleted; choose another`,
      );
    await told(deps);
    return made;
  });
  api.post('/organizations/:slug/rename', ADMIN, async (request): Promise<Organization> => {
    const slug = slugOf(request);
    const name = nameOf(request.body, 'name');
    if (name === undefined) throw new BadRequest('name', 'is missing; say what it is to be called');
    const renamed = await changes(request, anyReasonOf(request.body)).renameOrganization(slug, name);
    if (!renamed) throw noOrganization(slug);
    await deps.changed();
    return renamed;
  });
  api.post('/organizations/:slug/delete', ADMIN, async (request) => {
    const slug = slugOf(request);
    const reason = reasonOf(request.body);
    if (fieldOf(request.body, 'slug') !== slug)
      throw new BadRequest('slug', `must be ${slug}, typed once more: this cannot be undone`);
    const gone = await changes(request, reason).deleteOrganization(slug);
    if (!gone) throw noOrganization(slug);
    return { ...gone, published: await told(deps) };
  });

  api.post('/organizations/:slug/users/:id/rename', ADMIN, async (request) => {
    const id = idOf(request.params, 'id', 'person');
    const name = {
      firstName: nameOf(request.body, 'firstName') ?? '',
      lastName: nameOf(request.body, 'lastName') ?? '',
    };
    if (name.firstName === '' && name.lastName === '')
      throw new BadRequest('lastName', 'and firstName are both empty; delete the person to show nobody');
    const organization = await existing(sql, slugOf(request));
    const by = changes(request, anyReasonOf(request.body));
    return replaced(deps, request, await by.renameUser(organization, id, name), name);
  });
  api.post('/organizations/:slug/users/:id/delete', ADMIN, async (request) => {
    const id = idOf(request.params, 'id', 'person');
    const by = changes(request, reasonOf(request.body));
    const gone = await by.deleteUser(await existing(sql, slugOf(request)), id);
    return replaced(deps, request, gone, { firstName: '', lastName: '' });
  });
}

/** Has readers and open pages hear of a change. @returns whether readers have */
export async function told({ openWriter, changed }: AdministrationDependencies): Promise<boolean> {
  const published = await publishNow(openWriter());
  await changed();
  return published;
}

/** An organization that can be changed. @throws NotFound also for one that was deleted */
export async function existing(sql: Sql, slug: string): Promise<Organization> {
  const organization = await findOrganization(sql, slug);
  if (organization) return organization;
  throw noOrganization(slug);
}

export const slugOf = (request: FastifyRequest): string => (request.params as { slug: string }).slug;
export const noOrganization = (slug: string): NotFound =>
  new NotFound(`there is no organization "${slug}", or it was deleted`);

async function replaced(
  deps: AdministrationDependencies,
  request: FastifyRequest,
  done: Omit<ChangedUser, keyof UserName> | undefined,
  name: UserName,
): Promise<Published<ChangedUser>> {
  const { slug, id } = request.params as { slug: string; id: string };
  if (!done) throw new NotFound(`${slug} has no person ${id}`);
  return { ...done, ...name, published: await told(deps) };
}
