/** Notifies open pages of changes by server-sent events. */
import type { FastifyReply, FastifyRequest } from 'fastify';

const CHECK_EVERY_MS = 2000;
/** Proxies and browsers close a connection that is silent for longer. */
const BEAT_EVERY_MS = 15_000;

/** @param mark returns a text that differs after each change @param onChange called before the pages are notified */
export function changeFeed(mark: () => Promise<string>, onChange: () => void, everyMs = CHECK_EVERY_MS) {
  const pages = new Set<FastifyReply['raw']>();
  let last: string | undefined;
  const timers: NodeJS.Timeout[] = [];
  let checking: Promise<void> | undefined;

  const send = (text: string) => {
    for (const page of pages) page.write(text);
  };
  const check = () => {
    checking ??= mark()
      .then(
        (found) => {
          if (found === last) return;
          last = found;
          onChange();
          send(event(found));
        },
        // The database does not answer. Pages are notified when it answers again.
        () => {},
      )
      .finally(() => {
        checking = undefined;
      });
    return checking;
  };
  const stop = () => {
    for (const timer of timers.splice(0)) clearInterval(timer);
  };
  return {
    /** Checks after a change of this process. A check that is under way may have read the mark before it. */
    async changed() {
      await checking;
      await check();
    },
    /** Returns the mark before a read, so that a page can tell whether its data is older than an event. */
    async mark() {
      // Without an open page, no timer checks for changes.
      if (pages.size === 0) await check();
      return last;
    },
    /** Answers with events until the page closes: `change` at once and after each change of the mark. HEAD gets no events. */
    open(request: FastifyRequest, reply: FastifyReply) {
      reply.hijack();
      const page = reply.raw;
      for (const [name, value] of Object.entries(reply.getHeaders())) {
        if (value !== undefined) page.setHeader(name, value);
      }
      page.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
      if (request.method === 'HEAD') {
        page.end();
        return;
      }
      page.write(`retry: 2000\n${last === undefined ? '\n' : event(last)}`);
      pages.add(page);
      if (timers.length === 0)
        timers.push(
          setInterval(() => void check(), everyMs),
          setInterval(() => send(': beat\n\n'), BEAT_EVERY_MS),
        );
      void check();
      request.raw.once('close', () => {
        pages.delete(page);
        if (pages.size === 0) stop();
      });
    },
    [Symbol.dispose]() {
      stop();
      for (const page of pages) page.end();
      pages.clear();
    },
  };
}

const event = (mark: string) => `event: change\ndata: ${mark}\n\n`;
