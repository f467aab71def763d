import { open, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  type JsonRequest,
  misconfigured,
  passingFailure,
  SourceError,
  type SourceFailureKind,
  type SourceHttp,
} from '../source.ts';
import { chunksOf, readJson, tooLarge } from './body.ts';
import { silenceDeadline } from './deadline.ts';

export interface ReadingLimits {
  readonly deadlineMs: number;
  readonly maxBytes: number;
  readonly maxStreamBytes?: number;
  readonly signal?: AbortSignal;
}

/** Several times the largest payload of any provider. */
export const MOST_STREAM_BYTES = 4 * 1024 ** 3;

const KINDS: Readonly<Record<string, SourceFailureKind>> = {
  ENOENT: 'gone',
  ENOTDIR: 'gone',
  EACCES: 'misconfigured',
  EPERM: 'misconfigured',
};

/** Opens a file on this machine as a source, with the same limits and deadlines as an upstream. No reading is repeated. */
export function openSourceFile(from: URL | string, options: ReadingLimits): SourceHttp {
  const path = typeof from === 'string' ? resolve(from) : pathIn(from);
  const url = pathToFileURL(path);
  const noAddress = () =>
    misconfigured(`${path} is a path; this source's URL must start with http:// or https://`);

  function reading(below: string, request: JsonRequest, deadline: AbortSignal) {
    if (below !== '' || Object.keys(request.query ?? {}).length > 0) throw noAddress();
    const ended = [options.signal, request.signal].filter((signal) => signal !== undefined);
    const failed = (error: unknown): unknown => {
      if (error instanceof SourceError) return error;
      for (const { aborted, reason } of ended) if (aborted) return reason;
      if (deadline.aborted) return passingFailure(`${path} was not read within ${options.deadlineMs} ms`);
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
      const cannot = `the file ${path} cannot be read (${code})`;
      return new SourceError(KINDS[code] ?? 'retry', cannot, { cause: error });
    };
    return { signal: AbortSignal.any([deadline, ...ended]), failed };
  }

  const source: Pick<SourceHttp, 'base' | 'hasCredentials' | 'at' | 'json' | 'stream'> = {
    base: url,
    hasCredentials: false,
    at() {
      throw noAddress();
    },
    async json(below, schema, request = {}) {
      const { signal, failed } = reading(below, request, AbortSignal.timeout(options.deadlineMs));
      try {
        await sizeOf(path, options.maxBytes, signal);
        const payload = await readJson(contentOf(path, signal), schema, options.maxBytes, path);
        return { ...payload, headers: new Headers(), url };
      } catch (error) {
        throw failed(error);
      }
    },
    async stream(below, request = {}) {
      const silence = silenceDeadline(options.deadlineMs);
      const { signal, failed } = reading(below, request, silence.signal);
      const maxBytes = options.maxStreamBytes ?? MOST_STREAM_BYTES;
      try {
        const size = await silence.during(sizeOf(path, maxBytes, signal));
        const content = ReadableStream.from(contentOf(path, signal));
        return {
          body: chunksOf(content, { silence, maxBytes, where: path, failed }),
          headers: new Headers({ 'content-length': String(size) }),
          url,
        };
      } catch (error) {
        throw failed(error);
      }
    },
  };
  // A local file has no validators: reading it is cheap.
  return { ...source, jsonIfModified: source.json, streamIfModified: source.stream };
}

/** Runs before the file is opened: opening a pipe would wait for its writer, and no signal ends that. */
async function sizeOf(path: string, maxBytes: number, signal: AbortSignal): Promise<number> {
  signal.throwIfAborted();
  const stats = await stat(path);
  if (!stats.isFile()) throw misconfigured(`${path} is not a regular file; give the path of one`);
  if (stats.size > maxBytes) throw tooLarge(maxBytes, path);
  return stats.size;
}

/** Fails if the file changes during the reading. If another file replaces it, the old content is read. */
async function* contentOf(path: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  await using file = await open(path, 'r');
  const before = await file.stat();
  yield* file.createReadStream({ signal, autoClose: false });
  const after = await file.stat();
  if (after.size !== before.size || after.mtimeMs !== before.mtimeMs) {
    throw passingFailure(
      `${path} was changed while it was read; replace a file by renaming a new one over it`,
    );
  }
}

function pathIn(url: URL): string {
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw new SourceError('misconfigured', "the source's file: URL names no path on this machine", { cause });
  }
}
