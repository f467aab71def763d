import { type Duplex, pipeline, Readable } from 'node:stream';
import * as zlib from 'node:zlib';
import { badAnswer, passingFailure, SourceError } from '../source.ts';

export const ACCEPTED_CODINGS = 'gzip, deflate, br';

const CHUNK_BYTES = 64 * 1024;
const MOST_CODINGS = 3;

/** Bytes after the end of a stream are an error; zlib ignores them by default. */
const ONE_STREAM: zlib.ZlibOptions & zlib.BrotliOptions = {
  chunkSize: CHUNK_BYTES,
  rejectGarbageAfterEnd: true,
};

/** Creates the decoder of each coding from the first byte of the body. Each fails if the body ends early. */
const DECODERS: Readonly<Record<string, (firstByte: number) => Duplex>> = {
  // Gzip may have several members, so it has no such option. It rejects other bytes after its end, except zeros.
  gzip: () => zlib.createGunzip({ chunkSize: CHUNK_BYTES }),
  // RFC 9110 defines deflate with a zlib wrapper; some servers send none.
  deflate: (firstByte) =>
    (firstByte & 0x0f) === 8 ? zlib.createInflate(ONE_STREAM) : zlib.createInflateRaw(ONE_STREAM),
  br: () => zlib.createBrotliDecompress(ONE_STREAM),
  zstd: () => zlib.createZstdDecompress({ chunkSize: CHUNK_BYTES, rejectGarbageAfterEnd: true }),
};

/**
 * Yields the decoded chunks of a body when they arrive. Every coding must reach its own end.
 * @throws SourceError `retry` for a body that ends early, `invalid` for a broken body or an unknown coding
 */
export function decoded(
  body: AsyncIterable<Uint8Array>,
  contentEncoding: string | undefined,
  where: string,
): AsyncIterable<Uint8Array> {
  const codings = (contentEncoding ?? '')
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim().replace(/^x-/, ''))
    .filter((coding) => coding !== '' && coding !== 'identity');
  const unknown = codings.find((coding) => !Object.hasOwn(DECODERS, coding));
  if (unknown !== undefined || codings.length > MOST_CODINGS) {
    const named = JSON.stringify((contentEncoding ?? '').slice(0, 40));
    throw badAnswer(
      `${where} answers in the content coding ${named}, which Fleetbook did not request and cannot read`,
    );
  }
  // The last coding in the header was applied last.
  return codings.reduceRight((from, coding) => decodedOnce(from, coding, where), body);
}

async function* decodedOnce(
  body: AsyncIterable<Uint8Array>,
  coding: string,
  where: string,
): AsyncGenerator<Uint8Array> {
  let failure: { readonly error: unknown } | undefined;
  let decoder: Duplex | undefined;
  const pieces = (async function* () {
    try {
      for await (const piece of body) if (piece.byteLength > 0) yield piece;
    } catch (error) {
      failure = { error };
      throw error;
    }
  })();
  async function* from(first: Uint8Array): AsyncGenerator<Uint8Array> {
    yield first;
    yield* pieces;
  }

  try {
    const { done, value: first } = await pieces.next();
    if (done) throw breaksOff(where, coding);
    decoder = DECODERS[coding]?.(first[0] ?? 0);
    if (decoder === undefined) throw new TypeError(`no decoder for ${coding}`);
    // The callback ignores a failure: reading the decoder throws it.
    yield* pipeline(Readable.from(from(first), { objectMode: false }), decoder, () => {});
  } catch (error) {
    if (failure !== undefined) throw failure.error;
    throw failureOfDecoder(error, where, coding);
  } finally {
    decoder?.destroy();
    // It may wait for a chunk until the owner of the body aborts.
    pieces.return().catch(() => {});
  }
}

function failureOfDecoder(error: unknown, where: string, coding: string): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  if (code === undefined) return error;
  if (code === 'Z_BUF_ERROR') return breaksOff(where, coding);
  return new SourceError('invalid', `${where} answers a body that is no valid ${coding} (${code})`, {
    cause: error,
  });
}

function breaksOff(where: string, coding: string): SourceError {
  return passingFailure(`${where} answers a body in ${coding} that ends too early`);
}
