/** Sends requests to the routes of the console. */
import { useEffect, useState } from 'preact/hooks';
import { type Failure, MARK } from '../../../../src/features/console/routes/answers.ts';
import { hearMark, useChanges } from './live.ts';
import { signInAgain } from './session.ts';

export interface Answer<T> {
  /** The last answer. It stays until the next one arrives, so that the layout of the page is stable. */
  readonly data: T | undefined;
  readonly error: string | undefined;
  /** `data` belongs to the previous address. */
  readonly isOld: boolean;
}

/**
 * Requests data, and requests it again after each change on the server.
 * @param refresh a new number repeats the request, e.g. `useTick()`
 */
export function useData<T>(address: string, refresh = 0): Answer<T> {
  const changes = useChanges();
  const [answer, setAnswer] = useState<{ address: string; data?: T; error?: string }>({ address });
  useEffect(() => {
    const abort = new AbortController();
    void request<T>(address, { signal: abort.signal }).then(
      (data) => setAnswer({ address, data }),
      (error: Error) => {
        if (abort.signal.aborted) return;
        setAnswer((before) => ({ ...before, address, error: error.message }));
      },
    );
    return () => abort.abort();
  }, [address, changes, refresh]);
  return { data: answer.data, error: answer.error, isOld: answer.address !== address };
}

/** Milliseconds without a key press before a request starts. */
export const DEBOUNCE_MS = 200;

/** Returns the value once it has stayed the same for the debounce time. */
export function useDebounced<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Requests JSON. Opens the sign-in page if the session has ended. @throws Error with the message of the route */
async function request<T>(address: string, init: RequestInit): Promise<T> {
  const response = await fetch(address, {
    ...init,
    headers: { accept: 'application/json', ...init.headers },
  });
  if (response.ok) {
    const data = (await response.json()) as T;
    const mark = response.headers.get(MARK);
    if (mark) hearMark(mark);
    return data;
  }
  if (response.status === 401) return signInAgain();
  const failure = await response.json().then(
    (body) => (body as Partial<Failure>).error,
    () => undefined,
  );
  throw new Error(failure ?? `the server answered ${response.status}`);
}

/** Sends an action. @throws Error with the message of the route */
export function act<T>(address: string, body: object): Promise<T> {
  return request<T>(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
