import { readFileSync } from 'node:fs';
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { ApiServer } from '../../../src/sources/clusters/kubernetes/api-server.ts';
import {
  connectionTo,
  loadClient,
  type ServerAddress,
} from '../../../src/sources/clusters/kubernetes/connect.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { FakeKubernetes } from './fake-kubernetes.ts';
import { BOTH } from './kubernetes-objects.ts';

const TLS = new URL('../../fixtures/kubernetes/tls/', import.meta.url);
const pem = (name: string) => readFileSync(new URL(name, TLS));
const path = (name: string) => new URL(name, TLS).pathname;
const tls = { cert: pem('server.crt'), key: pem('server.key') };

async function readFrom(address: Partial<ServerAddress> & { readonly url: string }): Promise<unknown> {
  const whole = { token: undefined, context: undefined, caFile: undefined, ...address };
  const server = new ApiServer(() => connectionTo(whole));
  const request = { path: PATH, query: {}, right: 'list', signal: new AbortController().signal };
  const { data } = await server.json(request, z.object({ items: z.array(z.unknown()) }), 60_000);
  return data;
}

const EMPTY = { items: [] };
const PATH = '/apis/postgresql.cnpg.io/v1/clusters';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** A kubeconfig with one context, in a temporary file. */
async function kubeconfig(server: string, user: object, cluster: object = {}) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-kubeconfig-'));
  const file = join(folder.path, 'config');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'usual',
    clusters: [
      { name: 'one', cluster: { server, ...cluster } },
      { name: 'other', cluster: { server: 'https://127.0.0.1:1' } },
    ],
    users: [{ name: 'me', user }],
    contexts: [
      { name: 'usual', context: { cluster: 'one', user: 'me' } },
      { name: 'unusual', context: { cluster: 'other', user: 'me' } },
      { name: 'broken', context: { cluster: 'none', user: 'me' } },
    ],
  };
  await writeFile(file, JSON.stringify(config));
  return { file, folder: folder.path, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

describe('the API server', () => {
  it('is reached over https with the certificate authority of the option caFile', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH, token: 'abc', tls });
    expect(await readFrom({ url: kube.url, token: 'abc', caFile: path('ca.crt') })).toEqual(EMPTY);
  });

  it('is not trusted without the certificate authority', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH, tls });
    await expect(readFrom({ url: kube.url, token: 'abc' })).rejects.toMatchObject({ kind: 'misconfigured' });
    expect(kube.taken).toEqual([]);
  });

  it('may have a path prefix, as behind a gateway', async () => {
    await using gateway = await fakeUpstream();
    gateway.expect(
      { path: `/k8s/clusters/c-1${PATH}`, headers: { authorization: 'Bearer abc' }, times: 2 },
      { json: EMPTY },
    );
    expect(await readFrom({ url: `${gateway.url}/k8s/clusters/c-1`, token: 'abc' })).toEqual(EMPTY);
    expect(await readFrom({ url: `${gateway.url}/k8s/clusters/c-1/`, token: 'abc' })).toEqual(EMPTY);
  });

  it('rejects a wrong token, and the error does not repeat it', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH, token: 'abc' });
    const failure: unknown = await readFrom({ url: kube.url, token: 'wrong-token' }).catch(
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ kind: 'misconfigured', message: expect.stringContaining('401') });
    expect(JSON.stringify(failure) + String(failure)).not.toContain('wrong-token');
  });

  it.each<[string, Partial<ServerAddress> & { readonly url: string }, string]>([
    ['no process listens', { url: 'http://127.0.0.1:1' }, 'retry'],
    ['the URL holds credentials', { url: 'https://a:b@127.0.0.1:1' }, 'misconfigured'],
    ['the URL is of another protocol', { url: 'ftp://127.0.0.1' }, 'misconfigured'],
    [
      'the token has characters that no header can carry',
      { url: 'http://127.0.0.1:1', token: 'a\nb' },
      'misconfigured',
    ],
    ['a context is named without a kubeconfig', { url: 'http://127.0.0.1:1', context: 'a' }, 'misconfigured'],
    [
      'the certificate authority is missing',
      { url: 'https://127.0.0.1:1', caFile: '/none/ca.crt' },
      'misconfigured',
    ],
    ['the kubeconfig is missing', { url: '/none/kubeconfig' }, 'gone'],
    ['the kubeconfig is a folder', { url: tmpdir() }, 'misconfigured'],
    ['the kubeconfig has another format', { url: import.meta.filename }, 'misconfigured'],
    ['both a token and a kubeconfig are given', { url: '/none/kubeconfig', token: 'a' }, 'misconfigured'],
    ['the process is not in a pod', { url: 'https://kubernetes.default.svc' }, 'misconfigured'],
  ])('cannot be reached if %s', async (_, address, kind) => {
    vi.stubEnv('KUBERNETES_SERVICE_HOST', undefined);
    await expect(readFrom(address)).rejects.toMatchObject({ name: 'SourceError', kind });
  });

  it('reads credentials once for consecutive requests', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH });
    let read = 0;
    const server = new ApiServer(async () => {
      read += 1;
      return { base: new URL(kube.url), options: {} };
    });
    const request = { path: PATH, query: {}, right: 'list', signal: new AbortController().signal };
    for (let page = 0; page < 3; page++) await server.json(request, z.unknown(), 60_000);
    expect([read, kube.count('list')]).toEqual([1, 3]);
    kube.misbehave({ verb: 'list', status: 401 });
    await server.json(request, z.unknown(), 60_000);
    expect([read, kube.count('list')]).toEqual([2, 5]);
  });

  it('is abandoned if it does not answer in time', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH });
    const server = new ApiServer(
      // A hanging plugin.
      () => new Promise(() => {}),
    );
    const request = { path: '/', query: {}, right: 'list', signal: new AbortController().signal };
    await expect(server.json(request, z.unknown(), 20)).rejects.toMatchObject({
      kind: 'retry',
      message: expect.stringContaining('within 20 ms'),
    });
    expect(kube.taken).toEqual([]);
  });
});

describe('a pod', () => {
  it('uses the surrounding API server with its service account', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH, token: 'of-the-pod', tls });
    await using root = await mkdtempDisposable(join(tmpdir(), 'fleetbook-pod-'));
    const account = join(root.path, 'var/run/secrets/kubernetes.io/serviceaccount');
    await mkdir(account, { recursive: true });
    await writeFile(join(account, 'token'), 'of-the-pod');
    await writeFile(join(account, 'ca.crt'), pem('ca.crt'));
    vi.stubEnv('KUBERNETES_SERVICE_HOST', '127.0.0.1');
    vi.stubEnv('KUBERNETES_SERVICE_PORT', String(kube.port));
    expect(await readFrom({ url: 'https://kubernetes.default.svc', root: root.path })).toEqual(EMPTY);
  });
});

describe('a kubeconfig', () => {
  it('gives a token', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH, token: 'abc', tls });
    await using config = await kubeconfig(
      kube.url,
      { token: 'abc' },
      { 'certificate-authority-data': pem('ca.crt').toString('base64') },
    );
    expect(await readFrom({ url: config.file })).toEqual(EMPTY);
    expect(await readFrom({ url: pathToFileURL(config.file).href })).toEqual(EMPTY);
  });

  it('gives a client certificate', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH, tls: { ...tls, ca: pem('ca.crt') } });
    const cluster = { 'certificate-authority': path('ca.crt') };
    const user = { 'client-certificate': path('client.crt'), 'client-key': path('client.key') };
    await using config = await kubeconfig(kube.url, user, cluster);
    expect(await readFrom({ url: config.file })).toEqual(EMPTY);
    await using bare = await kubeconfig(kube.url, { token: 'abc' }, cluster);
    await expect(readFrom({ url: bare.file })).rejects.toMatchObject({ name: 'SourceError' });
  });

  it('gives the output of a plugin', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH, token: 'printed', tls });
    const credential = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: 'printed' },
    };
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: process.execPath,
      args: ['-p', JSON.stringify(JSON.stringify(credential))],
    };
    await using config = await kubeconfig(kube.url, { exec }, { 'certificate-authority': path('ca.crt') });
    expect(await readFrom({ url: config.file })).toEqual(EMPTY);
  });

  it.each([
    ['fails', process.execPath, ['-e', 'console.error("my-secret"); process.exit(1)'], 'retry'],
    ['prints another format', process.execPath, ['-p', '"my-secret"'], 'retry'],
    ['does not exist', '/none/plugin', [], 'misconfigured'],
  ] as const)('with a plugin that %s is an error that repeats no output', async (_, command, args, kind) => {
    await using config = await kubeconfig('https://127.0.0.1:1', { exec: { command, args } });
    const failure: unknown = await readFrom({ url: config.file }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'SourceError', kind });
    expect(String(failure)).not.toContain('my-secret');
  });

  it('uses the context of the option', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH });
    await using config = await kubeconfig(kube.url, { token: 'abc' }, { 'insecure-skip-tls-verify': true });
    expect(await readFrom({ url: config.file, context: 'usual' })).toEqual(EMPTY);
    await expect(readFrom({ url: config.file, context: 'unusual' })).rejects.toMatchObject({ kind: 'retry' });
    await expect(readFrom({ url: config.file, context: 'broken' })).rejects.toMatchObject({
      kind: 'misconfigured',
    });
    await expect(readFrom({ url: config.file, context: 'none' })).rejects.toMatchObject({
      kind: 'misconfigured',
      message: expect.stringContaining('usual, unusual, broken'),
    });
  });

  it('for a server without https needs an explicit option', async () => {
    await using config = await kubeconfig('http://127.0.0.1:1', { token: 'abc' });
    await expect(readFrom({ url: config.file })).rejects.toMatchObject({
      kind: 'misconfigured',
      message: expect.stringContaining('insecure-skip-tls-verify'),
    });
  });

  it('is read again each time, so that a rotated token is found', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH, token: 'new' });
    const cluster = { 'insecure-skip-tls-verify': true };
    await using config = await kubeconfig(kube.url, { token: 'old' }, cluster);
    await expect(readFrom({ url: config.file })).rejects.toMatchObject({ kind: 'misconfigured' });
    const text = readFileSync(config.file, 'utf8').replace('"old"', '"new"');
    await writeFile(config.file, text);
    expect(await readFrom({ url: config.file })).toEqual(EMPTY);
  });
});

describe('the client of Kubernetes', () => {
  it('that is not installed is named with the command that installs it', async () => {
    const absent = '@kubernetes/no-such-package';
    await expect(loadClient(() => import(absent))).rejects.toMatchObject({
      kind: 'misconfigured',
      message: 'this clone has no client of Kubernetes yet; run `npm ci` and start again',
    });
  });

  it('that fails in another way keeps its error', async () => {
    const broken = new Error('a bug of the client');
    await expect(loadClient(() => Promise.reject(broken))).rejects.toBe(broken);
  });
});
