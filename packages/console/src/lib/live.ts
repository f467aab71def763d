/** Receives the server's notifications of changes, by server-sent events. */
import { useEffect, useState } from 'preact/hooks';
import { signInAgain } from './session.ts';

export type LiveState = 'connecting' | 'live' | 'lost';

const CHANGED = 'fleetbook:changed';
const STATE = 'fleetbook:live';
/** Delay between a notification and the requests of the page, so that a burst of notifications causes one request. */
const BURST_MS = 250;
const RECONNECT_AFTER_MS = 2000;

let state: LiveState = 'connecting';
let source: EventSource | undefined;
let pending: number | undefined;
let mark: string | undefined;

function setLiveState(next: LiveState): void {
  if (state === next) return;
  state = next;
  dispatchEvent(new Event(STATE));
}

function connect(): void {
  source = new EventSource('/api/events');
  source.addEventListener('open', () => setLiveState('live'));
  source.addEventListener('error', () => {
    setLiveState('lost');
    void recover(source);
  });
  source.addEventListener('change', (event) => hearMark((event as MessageEvent<string>).data));
}

/** Compares the mark of an event or an answer with the last one. If they differ, some data of the page is old. */
export function hearMark(next: string): void {
  if (mark !== undefined && mark !== next) notifyViews();
  mark = next;
}

/** Handles a lost stream: opens the sign-in page if the session has ended, otherwise reconnects. */
async function recover(lost: EventSource | undefined): Promise<void> {
  const answer = await fetch('/api/session').catch(() => undefined);
  if (answer?.status === 401) return signInAgain();
  // The browser reconnects by itself, except after an error status.
  if (source === lost && lost?.readyState === EventSource.CLOSED) setTimeout(connect, RECONNECT_AFTER_MS);
}

/** Makes every view request its data again after a short delay. */
function notifyViews(): void {
  if (pending !== undefined) return;
  pending = window.setTimeout(() => {
    pending = undefined;
    dispatchEvent(new Event(CHANGED));
  }, BURST_MS);
}

/** Returns the number of changes on the server since the page was opened. */
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

/** Returns the current time, updated every `everyMs` milliseconds. */
export function useNow(everyMs = 10_000): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Returns a counter that increases every `everyMs` milliseconds while the page is visible, and when it becomes visible. */
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
