/** The requests of a fixture: every operation of `/v1` that the release describes, and the usual errors. */
import { type AskedRequest, answerTo, type RecordedAnswer } from './recorded-answers.ts';

const SEARCHES = [
  '?min_cpu=2&sort=price&limit=20',
  '?min_ram=4&ram_unit=Binary&sort=-ram&fields=id,name,price,ram',
  '?available=all&limit=50',
];

interface OpenApi {
  readonly paths: Readonly<Record<string, object>>;
}

export interface Recording {
  readonly openApi: OpenApi;
  readonly answers: readonly RecordedAnswer[];
}

/**
 * Sends the requests, and returns the answers.
 * @param cursor of the changes feed, from before the changes; undefined if the release has none
 * @throws Error if an operation of the release has no answer 200 among them
 */
export async function recordAnswers(
  url: string,
  tokens: Readonly<Record<string, string>>,
  cursor: string | undefined,
): Promise<Recording> {
  const openApi = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;
  const operations = Object.keys(openApi.paths).filter((path) => path.startsWith('/v1/'));
  const read = async <T>(path: string): Promise<T> =>
    JSON.parse((await answerTo(url, { token: 'all', path }, tokens)).body) as T;
  const requests = [...(await ofCatalogue(read)), ...(await ofClusters(read)), ...errors()];
  const ifThere = async (operation: string, paths: () => string[] | Promise<string[]>) => {
    if (!operations.includes(operation)) return;
    requests.push(...(await paths()).map((path) => ({ token: 'all', path })));
  };
  await ifThere('/v1/machines/search', () => SEARCHES.map((query) => `/v1/machines/search${query}`));
  await ifThere('/v1/machines/recommend', () => ['/v1/machines/recommend?cpu=2&ram=4&hours=730']);
  if (operations.includes('/v1/changes'))
    for (const token of ['all', 'machines', 'other'])
      requests.push({ token, path: `/v1/changes?after=${cursor}` });
  await ifThere('/v1/exports', async () => {
    const files = await read<{ file: string }[]>('/v1/exports');
    return ['', ...files.map(({ file }) => `/${file}`)].map((rest) => `/v1/exports${rest}`);
  });
  await ifThere('/v1/exports/opencost.csv', async () => {
    const providers = await read<{ id: number }[]>('/v1/providers');
    return providers.map(({ id }) => `/v1/exports/opencost.csv?provider=${id}`);
  });
  await ifThere('/v1/machines/{id}/terms', () =>
    ofEachRegion(read, ({ machine }) => (machine === undefined ? [] : `/v1/machines/${machine}/terms`)),
  );
  await ifThere('/v1/machines/{id}/availability', () =>
    ofEachRegion(read, ({ machine }) =>
      machine === undefined ? [] : `/v1/machines/${machine}/availability`,
    ),
  );
  await ifThere('/v1/machines/first-available', () =>
    ofEachRegion(read, ({ machine }) =>
      machine === undefined ? [] : `/v1/machines/first-available?ids=${machine}`,
    ),
  );
  await ifThere('/v1/regions/{id}/prices', () =>
    ofEachRegion(read, ({ region }) => `/v1/regions/${region}/prices`),
  );
  await ifThere('/v1/costs', async () => {
    const [slug] = await slugs(read);
    const ofCluster = ['cost', 'cost/history', 'alternatives'].map((rest) => `/v1/clusters/${slug}/${rest}`);
    return ['/v1/costs', ...ofCluster];
  });
  await ifThere('/v1/lifecycle', async () => {
    const [slug] = await slugs(read);
    return ['/v1/lifecycle?within=365', `/v1/clusters/${slug}/details`];
  });
  await ifThere('/v1/databases', async () => {
    const { databases } = await read<{ databases: { id: number }[] }>('/v1/databases');
    return ['/v1/databases', `/v1/databases/${databases[0]?.id}`];
  });
  const answers: RecordedAnswer[] = [];
  for (const request of requests) answers.push(await answerTo(url, request, tokens));
  const missing = operations.filter(
    (operation) =>
      !OF_OTHER_PROVIDERS.has(operation) && !answers.some((answer) => isAnswerOf(operation, answer)),
  );
  if (missing.length > 0) throw new Error(`no answer 200 of ${missing.join(', ')}: extend the requests`);
  return { openApi, answers };
}

function isAnswerOf(operation: string, { path, status }: RecordedAnswer): boolean {
  const parts = operation.split('/');
  const given = new URL(path, 'http://localhost').pathname.split('/');
  return (
    status === 200 &&
    parts.length === given.length &&
    parts.every((part, i) => part === given[i] || (part.startsWith('{') && !OWN_PARTS.has(given[i] ?? '')))
  );
}

/** They answer for providers that the fixture does not have. */
const OF_OTHER_PROVIDERS = new Set(['/v1/exports/karpenter.yaml']);

/** Fixed parts of paths that a parameter would match too. */
const OWN_PARTS = new Set(['search', 'recommend', 'first-available', 'karpenter.yaml', 'opencost.csv']);

type Read = <T>(path: string) => Promise<T>;

async function ofCatalogue(read: Read): Promise<AskedRequest[]> {
  const paths = await ofEachRegion(read, ({ list, machine }) => [
    list,
    ...(machine === undefined ? [] : [`/v1/machines/${machine}/prices`, `/v1/machines/${machine}`]),
  ]);
  return [
    { token: 'all', path: '/v1/providers' },
    { token: 'machines', path: '/v1/providers' },
    ...paths.map((path) => ({ token: 'all', path })),
  ];
}

interface ListedRegion {
  readonly region: number;
  /** The path of its list. */
  readonly list: string;
  /** The id of the first machine. */
  readonly machine: number | undefined;
}

async function ofEachRegion(read: Read, paths: (of: ListedRegion) => string | string[]): Promise<string[]> {
  const found: string[] = [];
  for (const provider of await read<{ id: number; regions: { id: number }[] }[]>('/v1/providers'))
    for (const { id: region } of provider.regions) {
      const list = `/v1/machines?provider=${provider.id}&region=${region}`;
      const [machine] = await read<{ id: number }[]>(list);
      found.push(...[paths({ region, list, machine: machine?.id })].flat());
    }
  return found;
}

async function ofClusters(read: Read): Promise<AskedRequest[]> {
  const all = await slugs(read);
  return [
    { token: 'all', path: '/v1/clusters' },
    { token: 'other', path: '/v1/clusters' },
    ...all.map((slug) => ({ token: 'all', path: `/v1/clusters/${slug}` })),
    ...all.slice(0, 1).map((slug) => ({ token: 'other', path: `/v1/clusters/${slug}` })),
  ];
}

const slugs = async (read: Read) => (await read<{ slug: string }[]>('/v1/clusters')).map(({ slug }) => slug);

function errors(): AskedRequest[] {
  return [
    { path: '/v1/providers' },
    { token: 'revoked', path: '/v1/providers' },
    { token: 'deleted', path: '/v1/clusters' },
    { token: 'machines', path: '/v1/clusters' },
    { token: 'all', path: '/v1/machines' },
    { token: 'all', path: '/v1/machines/0' },
    { token: 'all', path: '/v1/machines/2147483647' },
    { token: 'all', path: '/v1/clusters/no-such-cluster' },
    { token: 'all', path: '/v1/nothing' },
  ];
}
