import type { FastifyInstance, FastifyRequest } from 'fastify';
import { administration } from '../../../app/actions/administration.ts';
import {
  deletedOrganization,
  givenDecider,
  newOrganization,
  reasoned,
  renamedOrganization,
  renamedPerson,
} from '../../../app/actions/inputs.ts';
import { publishNow } from '../../../app/actions/publish.ts';
import type { Database } from '../../../db/connection/client.ts';
import { findOrganization, type Organization } from '../../../db/organizations.ts';
import { listUsers, type UserName } from '../../../db/users.ts';
import { deciderOf } from '../../../ops/access.ts';
import { Conflict, choiceOf, found, idOf, readBody, textOf, windowOf } from '../../../ops/parameters.ts';
import {
  type FoundOrganization,
  type FoundOrganizations,
  foundOrganization,
  ORGANIZATION_SORTS,
  searchOrganizations,
} from '../queries/organizations.ts';
import type { ChangedUser, Published, UsersAnswer } from './answers.ts';
import type { ConsoleContext } from './context.ts';

export const ADMIN = { config: { access: 'admin' } } as const;

export function addOrganizations(api: FastifyInstance, context: ConsoleContext): void {
  const { db } = context;
  const changes = changesOf(context);

  api.get('/organizations', async (request): Promise<FoundOrganizations> => {
    const { query } = request;
    return searchOrganizations(db, {
      text: textOf(query, 'q'),
      deleted: choiceOf(query, 'deleted', ['no', 'yes', 'all']) ?? 'no',
      sort: choiceOf(query, 'sort', ORGANIZATION_SORTS) ?? 'slug',
      descending: choiceOf(query, 'order', ['asc', 'desc']) === 'desc',
      ...windowOf(query),
    });
  });
  api.get('/organizations/:slug', (request) => storedOrganization(db, slugOf(request)));
  api.get('/organizations/:slug/users', async (request): Promise<UsersAnswer> => {
    const { id } = await storedOrganization(db, slugOf(request));
    return { rows: await listUsers(db, id) };
  });
  api.post('/organizations', ADMIN, async (request): Promise<Organization> => {
    const { slug, name } = readBody(newOrganization, request.body);
    const made = await changes(request).createOrganization(slug, name);
    if (!made)
      throw new Conflict(
        `the slug "${slug}" is taken, perhaps by a deleted organization; choose another one`,
      );
    await publish(context);
    return made;
  });
  api.post('/organizations/:slug/rename', ADMIN, async (request): Promise<Organization> => {
    const slug = slugOf(request);
    const { name } = readBody(renamedOrganization, request.body);
    const renamed = await changes(request).renameOrganization(slug, name);
    const organization = found(renamed, noOrganization(slug));
    await context.changed();
    return organization;
  });
  api.post('/organizations/:slug/delete', ADMIN, async (request) => {
    const slug = slugOf(request);
    readBody(deletedOrganization(slug), request.body);
    const gone = found(await changes(request).deleteOrganization(slug), noOrganization(slug));
    return { ...gone, published: await publish(context) };
  });

  api.post('/organizations/:slug/users/:id/rename', ADMIN, async (request) => {
    const id = idOf(request.params, 'id', 'person');
    const name = readBody(renamedPerson('delete the person to remove the name'), request.body);
    const organization = await existing(db, slugOf(request));
    return replaced(context, request, await changes(request).renameUser(organization, id, name), name);
  });
  api.post('/organizations/:slug/users/:id/delete', ADMIN, async (request) => {
    const id = idOf(request.params, 'id', 'person');
    readBody(reasoned, request.body);
    const gone = await changes(request).deleteUser(await existing(db, slugOf(request)), id);
    return replaced(context, request, gone, { firstName: '', lastName: '' });
  });
}

/** Returns the function that makes the changes of a request in the operator's name. */
export const changesOf =
  ({ openWriter }: ConsoleContext) =>
  (request: FastifyRequest) =>
    administration(openWriter().store.db, deciderOf(request, readBody(givenDecider, request.body).reason));

/** Publishes a change and notifies open pages. @returns false if the cache is down, and is updated later */
export async function publish({ openWriter, changed }: ConsoleContext): Promise<boolean> {
  const published = await publishNow(openWriter());
  await changed();
  return published;
}

/** Returns an organization, also a deleted one. @throws NotFound */
export const storedOrganization = async (db: Database, slug: string): Promise<FoundOrganization> =>
  found(await foundOrganization(db, slug), noOrganization(slug));

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
