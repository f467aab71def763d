import type { FastifyInstance, FastifyRequest } from 'fastify';
import { publishNow } from '../../../app/actions/publish.ts';
import { administration } from '../../../db/administration.ts';
import type { Database, Sql } from '../../../db/connection/client.ts';
import { findOrganization, type Organization } from '../../../db/organizations.ts';
import { listUsers, type UserName } from '../../../db/users.ts';
import { ORGANIZATION_SLUG } from '../../../domain/text/names.ts';
import { deciderOf } from '../../../ops/access.ts';
import {
  anyReasonOf,
  BadRequest,
  Conflict,
  choiceOf,
  fieldOf,
  found,
  idOf,
  nameOf,
  reasonOf,
  textOf,
  windowOf,
} from '../../../ops/parameters.ts';
import {
  type FoundOrganization,
  type FoundOrganizations,
  foundOrganization,
  ORGANIZATION_SORTS,
  searchOrganizations,
} from '../queries/organizations.ts';
import type { ChangedUser, Published, UsersAnswer } from './api.ts';
import type { ConsoleContext } from './context.ts';

export const ADMIN = { config: { access: 'admin' } } as const;

export function addOrganizations(api: FastifyInstance, context: ConsoleContext): void {
  const { sql, db } = context;
  const changes = changesOf(context);

  api.get('/organizations', async (request): Promise<FoundOrganizations> => {
    const { query } = request;
    return searchOrganizations(sql, {
      text: textOf(query, 'q'),
      deleted: choiceOf(query, 'deleted', ['no', 'yes', 'all']) ?? 'no',
      sort: choiceOf(query, 'sort', ORGANIZATION_SORTS) ?? 'slug',
      descending: choiceOf(query, 'order', ['asc', 'desc']) === 'desc',
      ...windowOf(query),
    });
  });
  api.get('/organizations/:slug', (request) => storedOrganization(sql, slugOf(request)));
  api.get('/organizations/:slug/users', async (request): Promise<UsersAnswer> => {
    const { id } = await storedOrganization(sql, slugOf(request));
    return { rows: await listUsers(db, id) };
  });
  api.post('/organizations', ADMIN, async (request): Promise<Organization> => {
    const slug = fieldOf(request.body, 'slug') ?? '';
    if (!ORGANIZATION_SLUG.test(slug))
      throw new BadRequest('slug', 'must be 1 to 63 lower-case letters, digits and dashes, e.g. acme');
    const name = nameOf(request.body, 'name') ?? slug;
    const made = await changes(request, anyReasonOf(request.body)).createOrganization(slug, name);
    if (!made)
      throw new Conflict(
        `the slug "${slug}" is taken, perhaps by a deleted organization; choose another one`,
      );
    await publish(context);
    return made;
  });
  api.post('/organizations/:slug/rename', ADMIN, async (request): Promise<Organization> => {
    const slug = slugOf(request);
    const name = nameOf(request.body, 'name');
    if (name === undefined) throw new BadRequest('name', 'is missing; give the new name');
    const renamed = await changes(request, anyReasonOf(request.body)).renameOrganization(slug, name);
    const organization = found(renamed, noOrganization(slug));
    await context.changed();
    return organization;
  });
  api.post('/organizations/:slug/delete', ADMIN, async (request) => {
    const slug = slugOf(request);
    const reason = reasonOf(request.body);
    if (fieldOf(request.body, 'slug') !== slug)
      throw new BadRequest('slug', `must be ${slug}, to confirm: this cannot be undone`);
    const gone = found(await changes(request, reason).deleteOrganization(slug), noOrganization(slug));
    return { ...gone, published: await publish(context) };
  });

  api.post('/organizations/:slug/users/:id/rename', ADMIN, async (request) => {
    const id = idOf(request.params, 'id', 'person');
    const name = {
      firstName: nameOf(request.body, 'firstName') ?? '',
      lastName: nameOf(request.body, 'lastName') ?? '',
    };
    if (name.firstName === '' && name.lastName === '')
      throw new BadRequest('lastName', 'and firstName are both empty; delete the person to remove the name');
    const organization = await existing(db, slugOf(request));
    const by = changes(request, anyReasonOf(request.body));
    return replaced(context, request, await by.renameUser(organization, id, name), name);
  });
  api.post('/organizations/:slug/users/:id/delete', ADMIN, async (request) => {
    const id = idOf(request.params, 'id', 'person');
    const by = changes(request, reasonOf(request.body));
    const gone = await by.deleteUser(await existing(db, slugOf(request)), id);
    return replaced(context, request, gone, { firstName: '', lastName: '' });
  });
}

/** Returns the function that makes the changes of a request in the operator's name. */
export const changesOf =
  ({ openWriter }: ConsoleContext) =>
  (request: FastifyRequest, reason: string | undefined) =>
    administration(openWriter().store.db, deciderOf(request, reason));

/** Publishes a change and notifies open pages. @returns false if the cache is down, and is updated later */
export async function publish({ openWriter, changed }: ConsoleContext): Promise<boolean> {
  const published = await publishNow(openWriter());
  await changed();
  return published;
}

/** Returns an organization, also a deleted one. @throws NotFound */
export const storedOrganization = async (sql: Sql, slug: string): Promise<FoundOrganization> =>
  found(await foundOrganization(sql, slug), noOrganization(slug));

/** @throws NotFound also for a deleted organization */
export const existing = async (db: Database, slug: string): Promise<Organization> =>
  found(await findOrganization(db, slug), noOrganization(slug));

export const slugOf = (request: FastifyRequest): string => (request.params as { slug: string }).slug;
const noOrganization = (slug: string): string => `there is no organization "${slug}", or it was deleted`;

async function replaced(
  context: ConsoleContext,
  request: FastifyRequest,
  done: Omit<ChangedUser, keyof UserName> | undefined,
  name: UserName,
): Promise<Published<ChangedUser>> {
  const { slug, id } = request.params as { slug: string; id: string };
  const changed = found(done, `${slug} has no person ${id}`);
  return { ...changed, ...name, published: await publish(context) };
}
