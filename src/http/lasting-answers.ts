/** Limits the number of lasting answers: streams and downloads. */
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
    response.on('close', end);
    // A pipelined response emits no `close` when its connection ends.
    if (socket instanceof Socket) socket.on('close', end);
  }
  return life.signal;
}

const LIMITS = ['process', 'organization', 'token'] as const;

/** The limit that is reached. */
export type Full = (typeof LIMITS)[number];

/** Counts lasting answers. A place is free again when the signal of its answer aborts. */
export class Places {
  readonly #limits: Readonly<Record<Full, number>>;
  readonly #taken = new Map<string, number>();

  constructor(limits: Readonly<Record<Full, number>>) {
    this.#limits = limits;
  }

  /** Takes a place until `life` aborts. @returns the limit that is reached; undefined for success */
  enter({ organizationId, tokenId }: Grant, life: AbortSignal): Full | undefined {
    const keys = {
      process: 'process',
      organization: `organization ${organizationId}`,
      token: `token ${tokenId}`,
    };
    const full = LIMITS.find((limit) => (this.#taken.get(keys[limit]) ?? 0) >= this.#limits[limit]);
    if (full !== undefined || life.aborted) return full;
    this.#count(Object.values(keys), 1);
    life.addEventListener('abort', () => this.#count(Object.values(keys), -1), { once: true });
    return undefined;
  }

  #count(keys: readonly string[], by: 1 | -1): void {
    for (const key of keys) {
      const count = (this.#taken.get(key) ?? 0) + by;
      if (count > 0) this.#taken.set(key, count);
      else this.#taken.delete(key);
    }
  }
}
