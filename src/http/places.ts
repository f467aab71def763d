/** Limits the number of lasting answers: streams, waiting requests and downloads. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Grant } from '../domain/scope.ts';

/** Returns a signal that aborts when the response ends or its client disconnects. It may be aborted already. */
export function lifeOf({ socket }: IncomingMessage, response: ServerResponse): AbortSignal {
  const life = new AbortController();
  if (response.destroyed || response.closed || socket.destroyed) life.abort();
  else {
    const end = () => {
      socket.removeListener('close', end);
      response.removeListener('close', end);
      life.abort();
    };
    response.once('close', end);
    // A pipelined response emits no `close` when its connection ends.
    if (socket instanceof Socket) socket.once('close', end);
  }
  return life.signal;
}

export interface PlaceLimits {
  readonly process: number;
  readonly organization: number;
  readonly token: number;
}

/** The limit that is reached. */
export type Full = keyof PlaceLimits;

/** Counts lasting answers. A place is free again when the signal of its answer aborts. */
export class Places {
  readonly #limits: PlaceLimits;
  readonly #organizations = new Map<number, number>();
  readonly #tokens = new Map<number, number>();
  #taken = 0;

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  /** Takes a place until `life` aborts. @returns the limit that is reached; undefined for success */
  enter({ organizationId, tokenId }: Grant, life: AbortSignal): Full | undefined {
    const { process, organization, token } = this.#limits;
    if (this.#taken >= process) return 'process';
    if ((this.#organizations.get(organizationId) ?? 0) >= organization) return 'organization';
    if ((this.#tokens.get(tokenId) ?? 0) >= token) return 'token';
    if (life.aborted) return undefined;
    this.#count(organizationId, tokenId, 1);
    life.addEventListener('abort', () => this.#count(organizationId, tokenId, -1), { once: true });
    return undefined;
  }

  #count(organizationId: number, tokenId: number, by: 1 | -1): void {
    this.#taken += by;
    add(this.#organizations, organizationId, by);
    add(this.#tokens, tokenId, by);
  }
}

function add(counts: Map<number, number>, id: number, by: number): void {
  const count = (counts.get(id) ?? 0) + by;
  if (count > 0) counts.set(id, count);
  else counts.delete(id);
}
