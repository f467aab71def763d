/**
 * Calls every documented operation of a running Fleetbook: `node test/deploy/programs/check-api.ts <url> <token>`. It needs a
 * published catalogue and a cluster of the token's organization.
 */
import { Ajv } from 'ajv';

interface Documented {
  readonly get: {
    readonly parameters?: readonly {
      readonly name: string;
      readonly in: string;
      readonly required?: boolean;
    }[];
    readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>;
    readonly security?: readonly unknown[];
  };
}

export interface CheckedApi {
  /** Paths that answered as documented. */
  readonly passed: readonly string[];
  readonly problems: readonly string[];
}

interface Region {
  readonly id: number;
}

type Known = Readonly<Record<string, string | undefined>>;

/** Reads the parameters of all operations from the data. The name of an id has its collection, e.g. `regions/{id}`. */
async function knownParameters(get: (path: string) => Promise<Response>): Promise<Known> {
  const json = async <T>(path: string) => (await (await get(path)).json()) as T;
  const providers = await json<{ id: number; regions: Region[] }[]>('/v1/providers');
  const { databases } = await json<{ databases: { id: number }[] }>('/v1/databases');
  for (const { id: provider, regions } of providers) {
    for (const { id: region } of regions) {
      const [machine] = await json<{ id: number }[]>(`/v1/machines?provider=${provider}&region=${region}`);
      const [cluster] = await json<{ slug: string }[]>('/v1/clusters');
      if (machine && cluster)
        return {
          provider: `${provider}`,
          region: `${region}`,
          'machines/{id}': `${machine.id}`,
          'regions/{id}': `${region}`,
          // Few providers have plans of databases.
          'databases/{id}': databases[0]?.id.toString(),
          slug: cluster.slug,
          ids: `${machine.id}`,
          cpu: '1',
          ram: '1',
        };
    }
  }
  throw new Error('there is no published machine, or no cluster of this organization');
}

/** It answers for two providers, which the checked catalogue may not have. */
const KARPENTER = '/v1/exports/karpenter.yaml';

/** Returns the path with its parameters; undefined if a required one is not known. */
function addressOf(path: string, { get }: Documented, known: Known): string | undefined {
  let missing = path === KARPENTER;
  const value = (name: string) => {
    missing ||= known[name] === undefined;
    return encodeURIComponent(known[name] ?? '');
  };
  const filled = path
    .replace(/(\w+)\/\{id\}/, (ofCollection, collection: string) => `${collection}/${value(ofCollection)}`)
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => value(name));
  const query = (get.parameters ?? [])
    .filter((each) => each.in === 'query' && (each.required || ['provider', 'region'].includes(each.name)))
    .map(({ name }) => `${name}=${value(name)}`);
  if (missing) return undefined;
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`;
}

/** Checks status, body, refusal without a token, and the conditional request of one operation. */
async function check(
  url: string,
  address: string,
  authorization: string,
  isValid: (body: unknown) => string | undefined,
) {
  const problems: string[] = [];
  const response = await fetch(`${url}${address}`, { headers: { authorization } });
  if (response.status !== 200) return [`${address} answers ${response.status}: ${await response.text()}`];
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  const body = isJson ? await response.json() : await response.arrayBuffer();
  const invalid = isJson ? isValid(body) : undefined;
  if (invalid) problems.push(`${address}: ${invalid}`);
  const stranger = await fetch(`${url}${address}`);
  await stranger.arrayBuffer();
  if (stranger.status !== 401) problems.push(`${address} answers ${stranger.status} without a token`);
  const etag = response.headers.get('etag');
  if (etag) {
    const again = await fetch(`${url}${address}`, { headers: { authorization, 'if-none-match': etag } });
    await again.arrayBuffer();
    // The data may have changed between the two.
    if (again.status !== 304 && again.headers.get('etag') === etag)
      problems.push(`${address} answers ${again.status} to its own ETag`);
  }
  return problems;
}

export async function checkApi(url: string, token: string): Promise<CheckedApi> {
  const authorization = `Bearer ${token}`;
  const get = (path: string) => fetch(`${url}${path}`, { headers: { authorization } });
  const document = (await (await get('/openapi.json')).json()) as { paths: Record<string, Documented> };
  const ajv = new Ajv({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'api');
  const known = await knownParameters(get);
  const passed: string[] = [];
  const problems: string[] = [];
  for (const [path, documented] of Object.entries(document.paths)) {
    const address = path.startsWith('/v1/') ? addressOf(path, documented, known) : undefined;
    if (address === undefined) continue;
    const pointer = path.replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D');
    const isValid = (body: unknown) => {
      const $ref = `api#/paths/${pointer}/get/responses/200/content/application~1json/schema`;
      const validate = ajv.compile({ $ref });
      return validate(body) ? undefined : ajv.errorsText(validate.errors);
    };
    const found = await check(url, address, authorization, isValid);
    if (found.length > 0) problems.push(...found);
    else passed.push(path);
  }
  for (const path of ['/healthz', '/readyz']) {
    const { status } = await fetch(`${url}${path}`);
    if (status === 200) passed.push(path);
    else problems.push(`${path} answers ${status}`);
  }
  return { passed, problems };
}

if (import.meta.main) {
  const [url = '', token = ''] = process.argv.slice(2);
  const { passed, problems } = await checkApi(url, token);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.stdout.write(`${passed.length} paths answer as documented: ${passed.join(' ')}\n`);
  if (problems.length > 0 || passed.length < 10) process.exitCode = 1;
}
