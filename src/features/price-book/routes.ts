/** The routes of price books in the operators' server. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { givenDecider } from '../../app/actions/inputs.ts';
import { publishNow } from '../../app/actions/publish.ts';
import type { OpsContext } from '../../app/feature.ts';
import type { Database } from '../../db/connection/client.ts';
import { findOrganization, type Organization } from '../../db/organizations.ts';
import { deciderOf } from '../../ops/access.ts';
import type { OpsApi, OpsPart } from '../../ops/feature-routes.ts';
import { Conflict, choiceOf, found, idOf, NotFound, readBody } from '../../ops/parameters.ts';
import type { AddedEntry, EndedEntry, EntryPreview, PriceBookAnswer } from './answers.ts';
import { priceBookChanges } from './changes.ts';
import { BadEntry, givenEntry } from './entries.ts';
import { previewEntry } from './preview.ts';
import { readNames, readPriceBook, readShownEntry } from './queries.ts';

const endedEntry = z.object({ at: z.string('must be a text').trim().optional() });

const ADMIN = { config: { access: 'admin' } } as const;
const BOOK = '/organizations/:slug/price-book';

export function priceBookPart({ store, openWriter }: OpsContext): OpsPart {
  const { db } = store;
  const changesOf = (request: FastifyRequest) =>
    priceBookChanges(openWriter().store.db, deciderOf(request, readBody(givenDecider, request.body).reason));
  return {
    addApi(api: FastifyInstance, { changed }: OpsApi) {
      const publish = async () => {
        const published = await publishNow(openWriter());
        await changed();
        return published;
      };
      api.get(BOOK, async (request): Promise<PriceBookAnswer> => {
        const organization = await storedOrganization(db, slugOf(request));
        return readPriceBook(db, organization, choiceOf(request.query, 'ended', ['no', 'yes']) === 'yes');
      });
      api.get(`${BOOK}/preview`, async (request): Promise<EntryPreview> => {
        const organization = await storedOrganization(db, slugOf(request));
        return orRefused(async () =>
          previewEntry(store.db, organization, givenEntry({ ...(request.query as object) })),
        );
      });
      api.post(BOOK, ADMIN, async (request): Promise<AddedEntry> => {
        const { reason: _, ...fields } = (request.body ?? {}) as Readonly<Record<string, unknown>>;
        const id = await orRefused(async () => {
          const given = givenEntry(fields);
          return changesOf(request).add(slugOf(request), given, await readNames(db, [given]));
        });
        const published = await publish();
        const entry = await readShownEntry(db, id);
        if (!entry) throw new Conflict(`entry ${id} was removed since; reload this page`);
        return { entry, published };
      });
      api.post(`${BOOK}/:entry/end`, ADMIN, async (request): Promise<EndedEntry> => {
        const id = idOf(request.params, 'entry', 'entry');
        const { at } = readBody(endedEntry, request.body);
        const to = await orRefused(() => changesOf(request).end(slugOf(request), id, at));
        return { id, to, published: await publish() };
      });
    },
  };
}

const slugOf = (request: FastifyRequest): string => (request.params as { slug: string }).slug;

async function storedOrganization(db: Database, slug: string): Promise<Organization> {
  return found(await findOrganization(db, slug), `there is no organization "${slug}", or it was deleted`);
}

async function orRefused<T>(change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    const isUnknown = error instanceof BadEntry && ['organization', 'entry'].includes(error.field);
    throw isUnknown ? new NotFound(error.message) : error;
  }
}
