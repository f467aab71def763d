/** The routes of tokens. Only admins may change them. Only the answer that creates a token contains it. */
import type { FastifyInstance } from 'fastify';
import { newToken, reasoned, rotation } from '../../../app/actions/inputs.ts';
import { tokenPage } from '../../../db/tokens.ts';
import { Conflict, found, idOf, NotFound, readBody, windowOf } from '../../../ops/parameters.ts';
import type { MadeToken, Published, RevokedToken, TokensAnswer } from './answers.ts';
import type { ConsoleContext } from './context.ts';
import { ADMIN, changesOf, existing, publish, slugOf, storedOrganization } from './organizations.ts';

export function addTokens(api: FastifyInstance, context: ConsoleContext): void {
  const { db } = context;
  const changes = changesOf(context);

  api.get('/organizations/:slug/tokens', async (request): Promise<TokensAnswer> => {
    const window = windowOf(request.query);
    const { id } = await storedOrganization(db, slugOf(request));
    return tokenPage(db, id, window);
  });
  api.post('/organizations/:slug/tokens', ADMIN, async (request): Promise<Published<MadeToken>> => {
    const terms = readBody(newToken, request.body);
    const { name, scopes, expires } = terms;
    const organization = await existing(db, slugOf(request));
    const { id, token } = await changes(request).createToken(organization, terms);
    return {
      id,
      token,
      organization: organization.slug,
      name: name ?? null,
      scopes,
      expiresAt: expires?.toISOString() ?? null,
      published: await publish(context),
    };
  });
  api.post('/tokens/:id/rotate', ADMIN, async (request): Promise<Published<MadeToken>> => {
    const id = idOf(request.params, 'id', 'token');
    const { grace } = readBody(rotation, request.body);
    const rotated = await changes(request).rotateToken(id, grace);
    if (rotated === 'unknown') throw new NotFound(noToken(id));
    if (typeof rotated === 'string')
      throw new Conflict(`token ${id} is ${rotated} and cannot be rotated; create a new one`);
    const { oldExpiresAt, ...made } = rotated;
    return { ...made, old: { id, expiresAt: oldExpiresAt }, published: await publish(context) };
  });
  api.post('/tokens/:id/revoke', ADMIN, async (request): Promise<Published<RevokedToken>> => {
    const id = idOf(request.params, 'id', 'token');
    readBody(reasoned, request.body);
    const outcome = found(await changes(request).revokeToken(id), noToken(id));
    return { id, wasRevoked: outcome === 'was revoked', published: await publish(context) };
  });
}

const noToken = (id: number) => `there is no token ${id}`;
