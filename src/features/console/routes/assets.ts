/** Serves the built files of the console. Each is read once. The build compresses them: a worker's event loop must not. */
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

interface Asset {
  readonly type: string;
  readonly plain: Buffer;
  readonly gzip: Buffer | undefined;
}

/** The page loads nothing from other sites and runs no inline script. No other page may show it in a frame. */
const CONSOLE_POLICY = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** The browser requests this data while it loads the script, which needs it. */
const preload = (path: string) => `<${path}>; rel=preload; as=fetch; crossorigin`;
const SESSION = preload('/api/session');
const OVERVIEW = preload('/api/overview');

const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Fleetbook console</title>
<h1>The console is not built</h1>
<p>Run <code>npm run build:console</code> in this checkout, and reload this page.
<p>Queues and metrics work without it: <a href="/queues">Queues</a>, <a href="/metrics">Metrics</a>.
</html>
`;

export function addAssets(app: FastifyInstance, folder: string, paths: readonly string[]): void {
  let reading: Promise<ReadonlyMap<string, Asset>> | undefined;
  const assets = async () => {
    reading ??= readAssets(folder);
    const built = await reading;
    // A build may follow.
    if (!built.has('index.html')) reading = undefined;
    return built;
  };
  const page = async (request: FastifyRequest, reply: FastifyReply) => {
    reply.header('content-security-policy', CONSOLE_POLICY);
    reply.header('link', request.url.split('?')[0] === '/' ? [SESSION, OVERVIEW] : [SESSION]);
    const index = (await assets()).get('index.html');
    if (index) return send(request, reply, index);
    return reply.code(503).type('text/html; charset=utf-8').send(NOT_BUILT);
  };
  for (const path of paths) app.get(path, page);
  app.get('/assets/:name', async (request, reply) => {
    const { name } = request.params as { name: string };
    const asset = (await assets()).get(`assets/${name}`);
    if (!asset) return reply.callNotFound();
    // The name of the file contains a hash of its content.
    reply.header('cache-control', 'private, max-age=31536000, immutable');
    return send(request, reply, asset);
  });
}

function send(request: FastifyRequest, reply: FastifyReply, { type, plain, gzip }: Asset): FastifyReply {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  reply.type(type).header('vary', 'accept-encoding');
  if (gzip && /\bgzip\b/.test(accepted)) return reply.header('content-encoding', 'gzip').send(gzip);
  return reply.send(plain);
}

async function readAssets(folder: string): Promise<Map<string, Asset>> {
  const entries: string[] = await readdir(folder, { recursive: true }).catch(() => []);
  const read = async (entry: string) => (entries.includes(entry) ? readFile(join(folder, entry)) : undefined);
  const found = new Map<string, Asset>();
  for (const entry of entries) {
    const type = TYPES[extname(entry)];
    if (type === undefined) continue;
    const [plain, gzip] = await Promise.all([readFile(join(folder, entry)), read(`${entry}.gz`)]);
    found.set(entry.replaceAll('\\', '/'), { type, plain, gzip });
  }
  return found;
}
