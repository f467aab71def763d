/** Tells open pages, by server-sent events, that there is something new to ask for. */
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Milliseconds between two looks, while a page is open. */
const LOOK_EVERY_MS = 2000;
/** Without a byte for longer, proxies and browsers take a connection for dead. */
const BEAT_EVERY_MS = 15_000;

export interface ChangeFeed extends Disposable {
  /** Answers with events until the page goes: `change` at once and whenever the mark is another one. */
  open(request: FastifyRequest, reply: FastifyReply): void;
  /** Looks now, e.g. after an action of this process. */
  look(): Promise<void>;
}

/**
 * @param mark a text that is another one when something has happened
 * @param onChange hears of another mark before the pages do
 * @param everyMs milliseconds between two looks; nobody looks while no page is open
 */
export function changeFeed(
  mark: () => Promise<string>,
  onChange: () => void,
  everyMs = LOOK_EVERY_MS,
): ChangeFeed {
  const pages = new Set<FastifyReply['raw']>();
  let last: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let beat: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;

  const send = (text: string) => {
    for (const page of pages) page.write(text);
  };
  const look = () => {
    looking ??= mark()
      .then(
        (found) => {
          if (found === last) return;
          last = found;
          onChange();
          send(event(found));
        },
        // The database is away: pages hear of what happened when it is back.
        () => {},
      )
      .finally(() => {
        looking = undefined;
      });
    return looking;
  };
  const rest = () => {
    clearInterval(timer);
    clearInterval(beat);
    timer = undefined;
    beat = undefined;
  };
  return {
    look,
    open(request, reply) {
      reply.hijack();
      const page = reply.raw;
      for (const [name, value] of Object.entries(reply.getHeaders())) {
        if (value !== undefined) page.setHeader(name, value);
      }
      page.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
      page.write(`retry: 2000\n${last === undefined ? '\n' : event(last)}`);
      pages.add(page);
      timer ??= setInterval(() => void look(), everyMs);
      beat ??= setInterval(() => send(': beat\n\n'), BEAT_EVERY_MS);
      void look();
      request.raw.once('close', () => {
        pages.delete(page);
        if (pages.size === 0) rest();
      });
    },
    [Symbol.dispose]() {
      rest();
      for (const page of pages) page.end();
      pages.clear();
    },
  };
}

const event = (mark: string) => `event: change\ndata: ${JSON.stringify({ mark })}\n\n`;
