/** Downloads export files as streams, and resumes after a lost connection. */
import type { ExportName } from './documents.ts';
import { FleetbookUnreachable, problemOf } from './problem.ts';
import { causeMessage, isTransient, type Requests } from './requests.ts';
import { linkedController, nextChunk, sleep } from './time.ts';

export interface DownloadOptions {
  /** Aborts the download, even while `body` is read. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without data after which the connection counts as lost; 30,000 by default. */
  readonly silenceMs?: number | undefined;
}

export interface Download {
  readonly file: ExportName;
  /** Identifies the catalogue in the file. */
  readonly version: string | undefined;
  /** The entity tag of the file as transferred, compressed or not. */
  readonly etag: string | undefined;
  /** Bytes of `body`; undefined if the transfer is compressed. */
  readonly bytes: number | undefined;
  /** The decompressed file. Read the stream to its end, or cancel it. */
  readonly body: ReadableStream<Uint8Array>;
}

/**
 * Starts a download. It resumes after a lost connection, unless the transfer is compressed or the file has changed.
 * Reading `body` can fail with the same errors.
 * @throws FleetbookProblem; FleetbookUnreachable; the reason of the caller's signal
 */
export async function download(
  requests: Requests,
  file: ExportName,
  { signal: caller, silenceMs = 30_000 }: DownloadOptions,
): Promise<Download> {
  const url = requests.url(`v1/exports/${file}`, {});
  const { controller: abortController, unlink } = linkedController(caller);
  const { signal } = abortController;
  const open: Open = (headers) =>
    requests.request(
      url,
      { accept: '*/*', ...headers },
      { signal, attempts: requests.attempts, opensStream: true },
      async (response) => {
        if (!response.ok) throw await problemOf(response);
        return response;
      },
    );
  const first = await open({});
  const etag = first.headers.get('etag') ?? undefined;
  const length = first.headers.get('content-length');
  const isCompressed = first.headers.has('content-encoding');
  const bytes = isCompressed || length === null ? undefined : Number(length);
  const readChunk = resumingReader(requests, open, {
    file,
    first,
    etag,
    bytes,
    isCompressed,
    silenceMs,
    signal,
  });
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const chunk = await readChunk();
        if (chunk) controller.enqueue(chunk);
        else {
          unlink();
          controller.close();
        }
      } catch (error) {
        unlink();
        abortController.abort();
        controller.error(error);
      }
    },
    cancel(reason) {
      unlink();
      abortController.abort(reason);
    },
  });
  return { file, version: first.headers.get('fleetbook-export-version') ?? undefined, etag, bytes, body };
}

type Open = (headers: Readonly<Record<string, string>>) => Promise<Response>;

interface StartedDownload extends Pick<Download, 'file' | 'etag' | 'bytes'> {
  readonly first: Response;
  readonly isCompressed: boolean;
  readonly silenceMs: number;
  readonly signal: AbortSignal;
}

/** Returns a function that reads the next chunk, over a new connection if the last one broke; undefined at the end. */
function resumingReader(
  requests: Requests,
  open: Open,
  { file, first, etag, bytes, isCompressed, silenceMs, signal }: StartedDownload,
): () => Promise<Uint8Array | undefined> {
  const canResume = !isCompressed && etag?.startsWith('"') === true;
  let reader = readerOf(first);
  let received = 0;
  let failures = 0;

  async function resume(error: unknown): Promise<void> {
    reader.cancel().catch(() => {});
    failures += 1;
    if (!canResume || etag === undefined || !isTransient(error) || failures >= requests.attempts)
      throw interrupted(error);
    await sleep(requests.pauseMs(failures, error), signal);
    const response = await open({ range: `bytes=${received}-`, 'if-range': etag });
    reader = readerOf(response);
    const isRest = response.headers.get('content-range')?.startsWith(`bytes ${received}-`);
    if (response.status !== 206 || !isRest) {
      reader.cancel().catch(() => {});
      throw interrupted(new Error('the file has changed; download it again'));
    }
  }

  function interrupted(cause: unknown): FleetbookUnreachable {
    const message = `The download of ${file} stopped after ${received} bytes: ${causeMessage(cause)}`;
    return new FleetbookUnreachable(message, { cause });
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
