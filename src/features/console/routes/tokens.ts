/** The routes of tokens. Only admins may change them. Only the answer that creates a token contains it. */
import type { FastifyInstance } from 'fastify';
import { tokenPage } from '../../../db/tokens.ts';
import { SCOPES, type Scope } from '../../../domain/scope.ts';
import { readAhead, readSpan } from '../../../domain/text/time-span.ts';
import {
  anyFieldOf,
  anyReasonOf,
  BadRequest,
  Conflict,
  fieldOf,
  found,
  idOf,
  NotFound,
  nameOf,
  reasonOf,
  windowOf,
} from '../../../ops/parameters.ts';
import type { MadeToken, Published, RevokedToken, TokensAnswer } from './api.ts';
import type { ConsoleContext } from './context.ts';
import { ADMIN, changesOf, existing, publish, slugOf, storedOrganization } from './organizations.ts';

export function addTokens(api: FastifyInstance, context: ConsoleContext): void {
  const { sql, db } = context;
  const changes = changesOf(context);

  api.get('/organizations/:slug/tokens', async (request): Promise<TokensAnswer> => {
    const window = windowOf(request.query);
    const { id } = await storedOrganization(sql, slugOf(request));
    return tokenPage(db, id, window);
  });
  api.post('/organizations/:slug/tokens', ADMIN, async (request): Promise<Published<MadeToken>> => {
    const scopes = scopesOf(request.body);
    const name = nameOf(request.body, 'name');
    const expiresAt = expiryOf(request.body, new Date());
    const by = changes(request, anyReasonOf(request.body));
    const organization = await existing(db, slugOf(request));
    const { id, token } = await by.createToken(organization, { name, scopes, expiresAt });
    return {
      id,
      token,
      organization: organization.slug,
      name: name ?? null,
      scopes,
      expiresAt: expiresAt?.toISOString() ?? null,
      published: await publish(context),
    };
  });
  api.post('/tokens/:id/rotate', ADMIN, async (request): Promise<Published<MadeToken>> => {
    const id = idOf(request.params, 'id', 'token');
    const graceMs = graceOf(request.body);
    const rotated = await changes(request, anyReasonOf(request.body)).rotateToken(id, graceMs);
    if (rotated === 'unknown') throw new NotFound(noToken(id));
    if (typeof rotated === 'string')
      throw new Conflict(`token ${id} is ${rotated} and cannot be rotated; create a new one`);
    const { oldExpiresAt, ...made } = rotated;
    return { ...made, old: { id, expiresAt: oldExpiresAt }, published: await publish(context) };
  });
  api.post('/tokens/:id/revoke', ADMIN, async (request): Promise<Published<RevokedToken>> => {
    const id = idOf(request.params, 'id', 'token');
    const outcome = found(await changes(request, reasonOf(request.body)).revokeToken(id), noToken(id));
    return { id, wasRevoked: outcome === 'was revoked', published: await publish(context) };
  });
}

const noToken = (id: number) => `there is no token ${id}`;

function scopesOf(body: unknown): readonly Scope[] {
  const given = anyFieldOf(body, 'scopes');
  const scopes = SCOPES.filter((scope) => Array.isArray(given) && given.includes(scope));
  if (Array.isArray(given) && given.length > 0 && given.length === scopes.length) return scopes;
  throw new BadRequest('scopes', `must be a list of one or more of ${SCOPES.join(', ')}, each once`);
}

function expiryOf(body: unknown, now: Date): Date | undefined {
  const text = fieldOf(body, 'expires');
  if (text === undefined) return undefined;
  const at = readAhead(text, now);
  if (at === undefined)
    throw new BadRequest('expires', `must be a time such as 90d, 12h or 2027-01-31; it is "${text}"`);
  if (at <= now) throw new BadRequest('expires', `is in the past; give a future time; it is "${text}"`);
  return at;
}

function graceOf(body: unknown): number {
  const text = fieldOf(body, 'grace');
  if (text === undefined) return 0;
  const ms = readSpan(text);
  if (ms !== undefined) return ms;
  throw new BadRequest('grace', `must be a span such as 30m, 1h or 7d; it is "${text}"`);
}
