/** nginx that serves the captured bytes from files, with the captured headers: one port for each answer. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findProgram } from '../../src/processes/find-program.ts';
import { freePort } from '../../src/processes/port.ts';
import type { Answer } from './capture.ts';
import { pinned, stop } from './program.ts';

export interface Nginx extends AsyncDisposable {
  readonly ports: Readonly<Record<string, number>>;
}

export function findNginx(): string | undefined {
  return findProgram('nginx');
}

/** @throws Error if it does not listen within five seconds */
export async function startNginx(
  binary: string,
  folder: string,
  answers: Readonly<Record<string, Answer>>,
): Promise<Nginx> {
  const home = join(folder, 'nginx');
  await mkdir(join(home, 'files'), { recursive: true });
  const ports: Record<string, number> = {};
  for (const [id, { body }] of Object.entries(answers)) {
    ports[id] = await freePort();
    await writeFile(join(home, 'files', id), body);
  }
  const file = join(home, 'nginx.conf');
  await writeFile(file, configuration(home, ports, answers));
  const [command, args] = pinned('server', binary, ['-p', home, '-c', file, '-e', join(home, 'error.log')]);
  const child = spawn(command, args, { stdio: 'ignore' });
  child.once('error', () => {});
  try {
    for (const port of Object.values(ports)) await listening(port, child);
  } catch (error) {
    await stop(child);
    throw error;
  }
  return { ports, [Symbol.asyncDispose]: () => stop(child) };
}

/** Headers that nginx sets itself, so `add_header` must not. */
const WRITTEN_BY_NGINX = new Set(['content-length', 'content-type']);

function configuration(
  home: string,
  ports: Readonly<Record<string, number>>,
  answers: Readonly<Record<string, Answer>>,
): string {
  const servers = Object.entries(answers).map(
    ([id, { headers }]) => `
  server {
    listen 127.0.0.1:${ports[id]};
    location / {
      try_files /${id} =404;
${headers
  .filter(([name]) => !WRITTEN_BY_NGINX.has(name.toLowerCase()))
  .map(([name, value]) => `      add_header ${name} ${JSON.stringify(value)};`)
  .join('\n')}
    }
  }`,
  );
  // Started by root, its workers would run as a user who may not read the folder.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  return `
${user}
daemon off;
pid ${home}/pid;
worker_processes 1;
events { worker_connections 4096; }
http {
  root ${home}/files;
  default_type application/json;
  client_body_temp_path ${home}/body;
  proxy_temp_path ${home}/proxy;
  fastcgi_temp_path ${home}/fastcgi;
  uwsgi_temp_path ${home}/uwsgi;
  scgi_temp_path ${home}/scgi;
  access_log off;
  server_tokens off;
  etag off;
  if_modified_since off;
  sendfile on;
  tcp_nopush on;
  open_file_cache max=100 inactive=1h;
  open_file_cache_valid 1h;
  keepalive_timeout 72s;
  keepalive_requests 1000000000;
${servers.join('\n')}
}
`;
}

async function listening(port: number, child: ChildProcess): Promise<void> {
  for (const until = Date.now() + 5000; Date.now() < until && child.exitCode === null; await sleep(10)) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (open) return;
  }
  throw new Error(`nginx does not listen on port ${port}`);
}
