/** Downloads export files as streams, and resumes after a lost connection. */
import type { ExportName } from './documents.ts';
import { FleetbookUnreachable, problemOf } from './problem.ts';
import { type CallOptions, causeOf, isPassing, type Requests } from './requests.ts';
import { linked, nextChunk, sleep } from './time.ts';

interface ExportChoice {
  /** `all`: the files with sold-out machines; `now` by default. */
  readonly available?: 'now' | 'all' | undefined;
}

export interface ExportsOptions extends CallOptions, ExportChoice {}

export interface DownloadOptions extends ExportChoice {
  /** Aborts the download, also while it is read. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without a byte after which the connection is lost; 30,000 by default. */
  readonly silenceMs?: number | undefined;
}

export interface Download {
  readonly file: ExportName;
  /** Identifies the state of the catalogue in the file. */
  readonly version: string | undefined;
  /** The entity tag of the file in its content coding. */
  readonly etag: string | undefined;
  /** Bytes of `body`; undefined if the transfer is compressed. */
  readonly bytes: number | undefined;
  /** The decompressed file. Read it to its end, or cancel it. */
  readonly body: ReadableStream<Uint8Array>;
}

/**
 * Begins a download. After a lost connection it resumes, unless the transfer is compressed or the file has changed.
 * @throws FleetbookProblem; FleetbookUnreachable, also while `body` is read
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
      throw interrupted(new Error('the file has changed; download it again'));
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
