/**
 * Browsers that have signed in before: a signed cookie says by which name and when. It opens nothing. Whoever guesses the
 * name elsewhere cannot keep this browser out, since its tries are counted for itself, see attempts.ts.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { setSigned, signedText } from './cookies.ts';

const COOKIE = 'fleetbook-device';
const KEPT_S = 180 * 24 * 3600;

export interface KnownDevice {
  readonly id: string;
  /** By which it signed in; empty for OPS_TOKEN. */
  readonly name: string;
}

const FORM = /^device\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{0,128})\.(\d{1,12})$/;

/** @param now milliseconds */
export function knownDevice(request: FastifyRequest, now: number): KnownDevice | undefined {
  const [, id, name = '', since] = FORM.exec(signedText(request, COOKIE) ?? '') ?? [];
  if (id === undefined || now / 1000 - Number(since) >= KEPT_S) return undefined;
  return { id, name: Buffer.from(name, 'base64url').toString() };
}

/** After somebody has signed in. @param now milliseconds */
export function rememberDevice(
  request: FastifyRequest,
  reply: FastifyReply,
  name: string,
  now: number,
): void {
  const id = randomBytes(16).toString('base64url');
  const text = `device.${id}.${Buffer.from(name).toString('base64url')}.${Math.floor(now / 1000)}`;
  setSigned(request, reply, COOKIE, text, { maxAge: KEPT_S });
}
