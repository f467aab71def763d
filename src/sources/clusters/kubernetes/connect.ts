import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type * as Client from '@kubernetes/client-node';
import type { KubeConfig } from '@kubernetes/client-node';
import { misconfigured, passingFailure, SourceError } from '../../source.ts';

export interface Connection {
  readonly base: URL;
  /** Credentials, certificates and proxy; contains secrets. */
  readonly options: RequestOptions;
}

export interface ServerAddress {
  /** `https://…`, the path of a kubeconfig, or `https://kubernetes.default.svc` for the cluster of this pod. */
  readonly url: string;
  readonly token: string | undefined;
  readonly context: string | undefined;
  readonly caFile: string | undefined;
  /** The folder of a pod's credentials; tests set another one than the root of the file system. */
  readonly root?: string;
}

const IN_CLUSTER = /^kubernetes\.default\.svc(\.[a-z0-9.-]+)?$/;

/**
 * Reads the address of the API server and the credentials. Each call reads the files and runs the plugin of a kubeconfig
 * again, since they may be rotated. No message contains a secret.
 */
export async function connectionTo(address: ServerAddress): Promise<Connection> {
  const config = await configOf(address);
  const server = config.getCurrentCluster()?.server ?? '';
  const base = URL.canParse(server) ? new URL(server) : undefined;
  if (base === undefined || !/^https?:$/.test(base.protocol))
    throw misconfigured('the kubeconfig names no server that starts with https://');
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    throw failureOfCredentials(error, address);
  }
  for (const value of Object.values(options.headers ?? {})) {
    // Node's message would name only the header.
    if (!/^[\x20-\x7e]*$/.test(String(value)))
      throw misconfigured('the token contains a character that no header can have');
  }
  return { base, options };
}

/** Loading takes half a second and about 60 MB: only a Kubernetes source needs it. The bundle has the parts of this one class. */
const importClient = () => import('@kubernetes/client-node');

/** @throws SourceError with the remedy if the package is not installed */
export async function loadClient(
  load: () => Promise<Pick<typeof Client, 'KubeConfig'>> = importClient,
): Promise<typeof KubeConfig> {
  try {
    const { KubeConfig: loaded } = await load();
    return loaded;
  } catch (cause) {
    // `npm start` does not install its 80 MB in a clone.
    if (codeOf(cause) !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw misconfigured('this clone has no client of Kubernetes yet; run `npm ci` and start again');
  }
}

async function configOf(address: ServerAddress): Promise<KubeConfig> {
  const config = new (await loadClient())();
  const { token, caFile, context } = address;
  const url = URL.canParse(address.url) ? new URL(address.url) : undefined;
  if (url === undefined || url.protocol === 'file:') {
    if (token !== undefined || caFile !== undefined)
      throw misconfigured('a kubeconfig contains credentials and certificates: remove token and caFile');
    await loadFile(config, url === undefined ? resolve(address.url) : fileURLToPath(url), context);
    return config;
  }
  if (!/^https?:$/.test(url.protocol))
    throw misconfigured(`the source's URL starts with ${url.protocol}; it must start with https:`);
  if (url.username !== '' || url.password !== '')
    throw misconfigured("the source's URL contains credentials; give them as the source's token instead");
  if (context !== undefined)
    throw misconfigured(
      "context belongs to a kubeconfig, and the source's URL is not the path of one: remove context",
    );
  if (token === undefined && caFile === undefined && IN_CLUSTER.test(url.hostname)) {
    config.loadFromCluster(address.root);
    if (config.getCurrentCluster()?.server.includes('undefined'))
      throw misconfigured(`${url.origin} works without a token only inside a pod, and this is none`);
    return config;
  }
  const cluster = {
    name: 'source',
    server: url.origin + url.pathname,
    // The library requires this for plain http, e.g. through `kubectl proxy`.
    skipTLSVerify: url.protocol === 'http:',
    ...(caFile === undefined ? {} : { caFile }),
  };
  config.loadFromClusterAndUser(cluster, { name: 'source', ...(token === undefined ? {} : { token }) });
  return config;
}

async function loadFile(config: KubeConfig, path: string, context: string | undefined): Promise<void> {
  // The library reads synchronously, with other messages.
  await readFile(path).catch((cause: unknown) => {
    const code = codeOf(cause);
    const kind = code === 'ENOENT' || code === 'ENOTDIR' ? 'gone' : 'misconfigured';
    throw new SourceError(kind, `the kubeconfig ${path} cannot be read (${code})`, { cause });
  });
  try {
    config.loadFromFile(path);
  } catch {
    throw misconfigured(`${path} is no kubeconfig: it cannot be parsed`);
  }
  if (context !== undefined) config.setCurrentContext(context);
  const names = config.getContexts().map(({ name }) => name);
  const current = config.getCurrentContext();
  if (!names.includes(current)) {
    throw misconfigured(
      `${path} has no context ${JSON.stringify(current ?? '')}; set the option context to one of ${names.join(', ')}`,
    );
  }
  if (config.getCurrentCluster() === null || config.getCurrentUser() === null)
    throw misconfigured(`the context ${current} of ${path} names a cluster or a user that the file lacks`);
}

function failureOfCredentials(error: unknown, { url }: ServerAddress): SourceError {
  const [code, message] = [codeOf(error), error instanceof Error ? error.message : ''];
  if (error instanceof Error && 'path' in error) {
    return misconfigured(
      `${String(error.path)}, which the credentials for ${url} need, cannot be read (${code})`,
    );
  }
  if (message.startsWith('HTTP protocol is not allowed'))
    return misconfigured(
      `${url} names a server without https; set insecure-skip-tls-verify there if that is intended`,
    );
  // The plugin's output may contain secrets.
  return passingFailure(
    `the plugin in ${url} failed to return credentials; run kubectl with the same kubeconfig to find the reason`,
  );
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}
