/** Tokens: made, rotated and revoked by admins. A token itself is in the one answer that made it, and nowhere else. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { administration } from '../../../db/administration.ts';
import { foundOrganization } from '../../../db/organizations.ts';
import { tokenPage } from '../../../db/tokens.ts';
import { SCOPES, type Scope } from '../../../domain/scope.ts';
import { readAhead, readSpan } from '../../../lib/time-span.ts';
import { deciderOf } from '../../../ops/access.ts';
import {
  anyFieldOf,
  anyReasonOf,
  BadRequest,
  Conflict,
  fieldOf,
  idOf,
  NotFound,
  nameOf,
  type Parameters,
  reasonOf,
  windowOf,
} from '../../../ops/parameters.ts';
import type { MadeToken, Published, RevokedToken, TokensAnswer } from './api.ts';
import {
  ADMIN,
  type AdministrationDependencies,
  existing,
  noOrganization,
  slugOf,
  told,
} from './organizations.ts';

export function addTokens(api: FastifyInstance, deps: AdministrationDependencies): void {
  const { sql, openWriter, now } = deps;
  const changes = (request: FastifyRequest, reason: string | undefined) =>
    administration(openWriter().store.db, deciderOf(request, reason));

  api.get('/organizations/:slug/tokens', async (request): Promise<TokensAnswer> => {
    const slug = slugOf(request);
    const window = windowOf(request.query as Parameters);
    const found = await foundOrganization(sql, slug);
    if (!found) throw noOrganization(slug);
    return tokenPage(sql, found.id, window);
  });
  api.post('/organizations/:slug/tokens', ADMIN, async (request): Promise<Published<MadeToken>> => {
    const scopes = scopesOf(request.body);
    const name = nameOf(request.body, 'name');
    const expiresAt = expiryOf(request.body, now());
    const by = changes(request, anyReasonOf(request.body));
    const organization = await existing(sql, slugOf(request));
    const { id, token } = await by.createToken(organization, { name, scopes, expiresAt });
    return {
      id,
      token,
      organization: organization.slug,
      name: name ?? null,
      scopes,
      expiresAt: expiresAt?.toISOString() ?? null,
      published: await told(deps),
    };
  });
  api.post('/tokens/:id/rotate', ADMIN, async (request): Promise<Published<MadeToken>> => {
    const id = idOf(request.params, 'id', 'token');
    const graceMs = graceOf(request.body);
    const rotated = await changes(request, anyReasonOf(request.body)).rotateToken(id, graceMs);
    if (rotated === 'unknown') throw noToken(id);
    if (typeof rotated === 'string')
      throw new Conflict(`token ${id} is ${rotated}, so nothing takes its place; make a new one`);
    const { oldExpiresAt, ...made } = rotated;
    return { ...made, old: { id, expiresAt: oldExpiresAt }, published: await told(deps) };
  });
  api.post('/tokens/:id/revoke', ADMIN, async (request): Promise<Published<RevokedToken>> => {
    const id = idOf(request.params, 'id', 'token');
    const outcome = await changes(request, reasonOf(request.body)).revokeToken(id);
    if (outcome === undefined) throw noToken(id);
    return { id, wasRevoked: outcome === 'was revoked', published: await told(deps) };
  });
}

const noToken = (id: number) => new NotFound(`there is no token ${id}`);

/** `scopes`, a list of one or more. @throws BadRequest */
function scopesOf(body: unknown): readonly Scope[] {
  const given = anyFieldOf(body, 'scopes');
  const scopes = SCOPES.filter((scope) => Array.isArray(given) && given.includes(scope));
  if (Array.isArray(given) && given.length > 0 && given.length === scopes.length) return scopes;
  throw new BadRequest('scopes', `must be a list of one or more of ${SCOPES.join(', ')}, each once`);
}

/** `expires`, a span or a time ahead; undefined for a token that does not expire. @throws BadRequest */
function expiryOf(body: unknown, now: Date): Date | undefined {
  const text = fieldOf(body, 'expires');
  if (text === undefined) return undefined;
  const at = readAhead(text, now);
  if (at === undefined)
    throw new BadRequest('expires', `is no time; use e.g. 90d, 12h or 2027-01-31; it is "${text}"`);
  if (at <= now) throw new BadRequest('expires', `lies in the past; give a time ahead; it is "${text}"`);
  return at;
}

/** `grace` in milliseconds, 0 unless given. @throws BadRequest */
function graceOf(body: unknown): number {
  const text = fieldOf(body, 'grace');
  if (text === undefined) return 0;
  const ms = readSpan(text);
  if (ms !== undefined) return ms;
  throw new BadRequest('grace', `is no time; use e.g. 30m, 1h or 7d; it is "${text}"`);
}
