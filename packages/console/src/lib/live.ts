/** Hears from the server that something has happened, by server-sent events. */
import { useEffect, useState } from 'preact/hooks';
import { signInAgain } from './session.ts';

export type LiveState = 'connecting' | 'live' | 'lost';

const CHANGED = 'fleetbook:changed';
const STATE = 'fleetbook:live';
/** Pages ask again at most so often, in milliseconds. */
const ASK_EVERY_MS = 1000;
const RECONNECT_AFTER_MS = 2000;

let state: LiveState = 'connecting';
let source: EventSource | undefined;
let pending: number | undefined;
let mark: string | undefined;

function become(next: LiveState): void {
  if (state === next) return;
  state = next;
  dispatchEvent(new Event(STATE));
}

function connect(): void {
  source = new EventSource('/api/events');
  source.addEventListener('open', () => become('live'));
  source.addEventListener('error', () => {
    become('lost');
    void recover(source);
  });
  source.addEventListener('change', (event) => {
    const next = String((event as MessageEvent<string>).data);
    // Also the first one: it may be younger than what the page has asked for.
    if (mark !== next) changed();
    mark = next;
  });
}

/** The stream ended: leaves for the sign-in page if the session has ended, else connects again. */
async function recover(lost: EventSource | undefined): Promise<void> {
  const answer = await fetch('/api/session').catch(() => undefined);
  if (answer?.status === 401) return signInAgain();
  // A browser connects again by itself, but not after an error status.
  if (source === lost && lost?.readyState === EventSource.CLOSED) setTimeout(connect, RECONNECT_AFTER_MS);
}

/** Has every open view ask again soon. */
function changed(): void {
  if (pending !== undefined) return;
  pending = window.setTimeout(() => {
    pending = undefined;
    dispatchEvent(new Event(CHANGED));
  }, ASK_EVERY_MS / 4);
}

/** A number that grows whenever there may be something new to ask for. */
export function useChanges(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const onChange = () => setCount((before) => before + 1);
    addEventListener(CHANGED, onChange);
    return () => removeEventListener(CHANGED, onChange);
  }, []);
  return count;
}

export function useLiveState(): LiveState {
  const [shown, setShown] = useState(state);
  useEffect(() => {
    if (source === undefined) connect();
    const onState = () => setShown(state);
    addEventListener(STATE, onState);
    return () => removeEventListener(STATE, onState);
  }, []);
  return shown;
}

/** The time, moving on every so many milliseconds, so that ages grow while nothing happens. */
export function useNow(everyMs = 10_000): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** A number that grows every so many milliseconds while the page is seen, and at once when it is seen again. */
export function useTick(everyMs: number): number {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    const next = () => {
      if (document.visibilityState === 'visible') setTick((before) => before + 1);
    };
    const timer = setInterval(next, everyMs);
    document.addEventListener('visibilitychange', next);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', next);
    };
  }, [everyMs]);
  return tick;
}
