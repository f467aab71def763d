/** Captures one real answer, so that other servers can send the same bytes. */
import { request } from 'node:http';

export interface Answer {
  readonly status: number;
  /** In the order and spelling as sent, without the headers that Node's server adds. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  /** From its `Keep-Alive` field. */
  readonly keepAliveMs: number;
}

/** An `Answer` as JSON: the headers as `writeHead` takes them, the body in base64. */
export interface StoredAnswer {
  readonly status: number;
  readonly headers: string[];
  readonly body: string;
  readonly keepAliveMs: number;
}

const NODES_OWN = new Set(['date', 'connection', 'keep-alive']);

/** @throws Error when nothing answers. */
export function fetchAnswer(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => {
        const [, seconds] = /timeout=(\d+)/.exec(String(response.headers['keep-alive'])) ?? [];
        resolve({
          status: response.statusCode ?? 0,
          headers: pairs(response.rawHeaders).filter(([name]) => !NODES_OWN.has(name.toLowerCase())),
          body: Buffer.concat(chunks),
          keepAliveMs: Number(seconds ?? 5) * 1000,
        });
      });
    });
    sent.once('error', reject);
    sent.end();
  });
}

export function stored({ status, headers, body, keepAliveMs }: Answer): StoredAnswer {
  return { status, headers: headers.flat(), body: body.toString('base64'), keepAliveMs };
}

function pairs(raw: readonly string[]): [string, string][] {
  const found: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) found.push([raw[i] ?? '', raw[i + 1] ?? '']);
  return found;
}
