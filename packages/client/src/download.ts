/** Files of exports, as streams that survive a broken connection. */
import type { ExportName } from './documents.ts';
import { FleetbookUnreachable, problemOf } from './problem.ts';
import { type CallOptions, causeOf, isPassing, type Requests } from './requests.ts';
import { linked, nextChunk, sleep } from './time.ts';

interface ExportChoice {
  /** `all`: the files with machines that are sold out. `now` unless given. */
  readonly available?: 'now' | 'all' | undefined;
}

export interface ExportsOptions extends CallOptions, ExportChoice {}

export interface DownloadOptions extends ExportChoice {
  /** Ends the download, also while it is read. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without a byte after which the connection counts as dead; 30,000 unless given. */
  readonly silenceMs?: number | undefined;
}

export interface Download {
  readonly file: ExportName;
  /** Names the catalogue that is in the file. */
  readonly version: string | undefined;
  /** Of the file in the coding in which it is sent. */
  readonly etag: string | undefined;
  /** Bytes of `body`; undefined where it is compressed on the way. */
  readonly bytes: number | undefined;
  /** The file, decompressed. It has to be read to its end, or cancelled. */
  readonly body: ReadableStream<Uint8Array>;
}

/**
 * Begins to download a file. A connection that breaks is made again and goes on where it was, unless the file is
 * compressed on the way or has been made anew.
 * @throws FleetbookProblem · FleetbookUnreachable, which reading `body` may give as well
 */
export async function download(
  requests: Requests,
  file: ExportName,
  { signal: caller, silenceMs = 30_000, available }: DownloadOptions,
): Promise<Download> {
  const url = requests.url(`v1/exports/${file}`, { available });
  const { life, unlink } = linked(caller);
  const { signal } = life;
  const open: Open = (headers) =>
    requests.ask(
      url,
      { accept: '*/*', ...headers },
      { signal, attempts: requests.attempts, staysOpen: true },
      async (response) => {
        if (!response.ok) throw await problemOf(response);
        return response;
      },
    );
  const first = await open({});
  const etag = first.headers.get('etag') ?? undefined;
  const length = first.headers.get('content-length');
  const isCoded = first.headers.has('content-encoding');
  const bytes = isCoded || length === null ? undefined : Number(length);
  const read = resumingRead(requests, open, { file, first, etag, bytes, isCoded, silenceMs, signal });
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const chunk = await read();
        if (chunk) controller.enqueue(chunk);
        else {
          unlink();
          controller.close();
        }
      } catch (error) {
        unlink();
        life.abort();
        controller.error(error);
      }
    },
    cancel(reason) {
      unlink();
      life.abort(reason);
    },
  });
  return { file, version: first.headers.get('fleetbook-export-version') ?? undefined, etag, bytes, body };
}

type Open = (headers: Readonly<Record<string, string>>) => Promise<Response>;

interface Begun extends Pick<Download, 'file' | 'etag' | 'bytes'> {
  readonly first: Response;
  readonly isCoded: boolean;
  readonly silenceMs: number;
  readonly signal: AbortSignal;
}

/** Reads the next chunk, over a new connection if the last one broke. The result is undefined at the end. */
function resumingRead(
  requests: Requests,
  open: Open,
  { file, first, etag, bytes, isCoded, silenceMs, signal }: Begun,
): () => Promise<Uint8Array | undefined> {
  const canResume = !isCoded && etag?.startsWith('"') === true;
  let reader = readerOf(first);
  let received = 0;
  let failures = 0;

  async function resume(error: unknown): Promise<void> {
    reader.cancel().catch(() => {});
    failures += 1;
    if (!canResume || etag === undefined || !isPassing(error) || failures >= requests.attempts)
      throw interrupted(error);
    await sleep(requests.pause(failures, error), signal);
    const more = await open({ range: `bytes=${received}-`, 'if-range': etag });
    reader = readerOf(more);
    const isRest = more.headers.get('content-range')?.startsWith(`bytes ${received}-`);
    if (more.status !== 206 || !isRest) {
      reader.cancel().catch(() => {});
      throw interrupted(new Error('it has been made anew meanwhile; download it again'));
    }
  }

  function interrupted(cause: unknown): FleetbookUnreachable {
    const why = causeOf(cause);
    return new FleetbookUnreachable(`The download of ${file} broke off after ${received} bytes: ${why}`, {
      cause,
    });
  }

  return async () => {
    for (;;) {
      try {
        const chunk = await nextChunk(reader, silenceMs);
        if (chunk === undefined && bytes !== undefined && received < bytes)
          throw new FleetbookUnreachable(`${file} ended after ${received} of ${bytes} bytes`);
        received += chunk?.length ?? 0;
        failures = 0;
        return chunk;
      } catch (error) {
        signal.throwIfAborted();
        await resume(error);
      }
    }
  };
}

function readerOf({ body }: Response): ReadableStreamDefaultReader<Uint8Array> {
  return (body ?? new ReadableStream<Uint8Array>({ start: (controller) => controller.close() })).getReader();
}
