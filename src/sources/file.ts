import { open, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseJson, readBytes, tooLarge } from './body.ts';
import { SourceError, type SourceFailureKind, type SourceHttp } from './source.ts';

export interface ReadingLimits {
  /** For one whole answer, body included. */
  readonly deadlineMs: number;
  /** Of one answer, uncompressed. */
  readonly maxBytes: number;
  /** Ends every request: the run that they belong to is over. */
  readonly signal?: AbortSignal;
}

const KINDS: Readonly<Record<string, SourceFailureKind>> = {
  ENOENT: 'gone',
  ENOTDIR: 'gone',
  EACCES: 'misconfigured',
  EPERM: 'misconfigured',
};

/**
 * A source that is one file on this machine, under the same size cap and deadline as one behind HTTP. Only the
 * document itself (`json('')`) can be asked for, and its answer has no headers.
 */
export function openSourceFile(from: URL | string, options: ReadingLimits): SourceHttp {
  const path = typeof from === 'string' ? resolve(from) : pathIn(from);
  const noAddress = () =>
    new SourceError(
      'misconfigured',
      `${path} is a path; this source's URL must start with http:// or https://`,
    );
  return {
    base: pathToFileURL(path),
    stream: () => Promise.reject(noAddress()),
    at() {
      throw noAddress();
    },
    async json(below, schema, request = {}) {
      if (below !== '' || Object.keys(request.query ?? {}).length > 0) throw noAddress();
      const deadline = AbortSignal.timeout(options.deadlineMs);
      const ended = [options.signal, request.signal].filter((signal) => signal !== undefined);
      try {
        const bytes = await read(path, options.maxBytes, AbortSignal.any([deadline, ...ended]));
        return { data: parseJson(bytes, schema, path), headers: new Headers(), url: pathToFileURL(path) };
      } catch (error) {
        if (error instanceof SourceError) throw error;
        for (const { aborted, reason } of ended) if (aborted) throw reason;
        if (deadline.aborted)
          throw new SourceError('retry', `${path} was not read within ${options.deadlineMs} ms`);
        const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
        throw new SourceError(KINDS[code] ?? 'retry', `the file ${path} cannot be read (${code})`, {
          cause: error,
        });
      }
    },
  };
}

async function read(path: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  signal.throwIfAborted();
  // Before it is opened: opening a pipe would wait for its writer, which no signal ends.
  const stats = await stat(path);
  if (!stats.isFile())
    throw new SourceError('misconfigured', `${path} is no file; give the path of a JSON document`);
  if (stats.size > maxBytes) throw tooLarge(maxBytes, path);
  await using file = await open(path, 'r');
  return await readBytes(file.createReadStream({ signal, autoClose: false }), maxBytes, path);
}

function pathIn(url: URL): string {
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw new SourceError('misconfigured', "the source's file: URL names no path on this machine", { cause });
  }
}
