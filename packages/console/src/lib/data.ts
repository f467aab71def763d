/** Asks the routes of the console. */
import { useEffect, useState } from 'preact/hooks';
import type { Failure } from '../../../../src/features/console/routes/api.ts';
import { useChanges } from './live.ts';
import { signInAgain } from './session.ts';

export interface Asked<T> {
  /** What was answered last; kept while the next answer is on its way, so that nothing jumps. */
  readonly data: T | undefined;
  readonly error: string | undefined;
  /** Whether what is shown belongs to another address than the one that is asked for. */
  readonly isOld: boolean;
}

/**
 * What a route answers: asked once for each address, and again when something has happened.
 * @param again another number asks again as well, e.g. `useTick()`
 */
export function useData<T>(address: string, again = 0): Asked<T> {
  const changes = useChanges();
  const [asked, setAsked] = useState<{ address: string; data?: T; error?: string }>({ address });
  // A change asks for the same address again.
  useEffect(() => {
    const abort = new AbortController();
    void ask<T>(address, { signal: abort.signal }).then(
      (data) => setAsked({ address, data }),
      (error: Error) => {
        if (abort.signal.aborted) return;
        setAsked((before) => ({ ...before, address, error: error.message }));
      },
    );
    return () => abort.abort();
  }, [address, changes, again]);
  return { data: asked.data, error: asked.error, isOld: asked.address !== address };
}

/** @throws Error with what the route says is wrong */
async function ask<T>(address: string, init: RequestInit = {}): Promise<T> {
  const response = await fetch(address, {
    ...init,
    headers: { accept: 'application/json', ...init.headers },
  });
  if (response.ok) return (await response.json()) as T;
  if (response.status === 401) return signInAgain();
  const failure = await response.json().then(
    (body) => (body as Partial<Failure>).error,
    () => undefined,
  );
  throw new Error(failure ?? `the server answered ${response.status}`);
}

/** Has something done. @throws Error with what the route says is wrong */
export async function act<T>(address: string, body: object): Promise<T> {
  return ask<T>(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}
