import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { rawUpstream } from './http/raw-upstream.ts';

const HTTP = fileURLToPath(new URL('../../src/sources/http/http.ts', import.meta.url));
/** Reads `http://catalogue.test/names`, a name without an address. */
const PROGRAM = `
import { z } from ${JSON.stringify(import.meta.resolve('zod'))};
import { openSourceHttp } from ${JSON.stringify(HTTP)};
const limits = { deadlineMs: 5000, maxBytes: 1000 };
const http = openSourceHttp({ baseUrl: 'http://catalogue.test', credentials: 'none', ...limits });
const { data } = await http.json('/names', z.unknown()).catch(({ kind }) => ({ data: kind }));
console.log(JSON.stringify(data));`;

async function readWith(env: Readonly<Record<string, string>>): Promise<string> {
  const args = ['--input-type=module', '--eval', PROGRAM];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { PATH: process.env.PATH, ...env },
  });
  return stdout.trim();
}

it('a source behind a proxy is read if Node is configured for it, and NO_PROXY is respected', async () => {
  await using proxy = await rawUpstream();
  proxy.answer = 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\n["there"]';
  const behind = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy.url };
  expect(await readWith(behind)).toBe('["there"]');
  expect(proxy.heads).toEqual([expect.stringContaining('GET http://catalogue.test/names HTTP/1.1\r\n')]);
  expect(await readWith({ ...behind, NO_PROXY: 'catalogue.test' })).not.toContain('there');
  expect(proxy.heads).toHaveLength(1);
});
