/** The requests, and Fleetbook's answers, which the other servers then give. */
import { type Answer, fetchAnswer } from './capture.ts';
import { type Filled, PROVIDER } from './fill.ts';

export type Server = 'fleetbook' | 'bare' | 'redis' | 'drizzle' | 'nginx';

export interface Target {
  readonly id: string;
  readonly what: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The other servers of this request. */
  readonly peers: readonly Server[];
}

/** @throws Error if memory did not answer as expected */
export async function captureAnswers(
  port: number,
  filled: Filled,
): Promise<{ targets: Target[]; answers: Record<string, Answer> }> {
  const headers = { authorization: `Bearer ${filled.token}` };
  const list = (region: number) => `/v1/machines?provider=${PROVIDER}&region=${region}`;
  const peers = ['bare', 'redis', 'drizzle', 'nginx'] as const;
  const targets: Target[] = [
    { id: 'list', what: 'machines, 3 KB', path: list(filled.small), headers, peers },
    { id: 'long-list', what: 'machines, 100 KB', path: list(filled.large), headers, peers },
    { id: 'machine', what: 'one machine', path: `/v1/machines/${filled.machine}`, headers, peers },
    { id: 'clusters', what: 'clusters', path: '/v1/clusters', headers, peers },
    { id: 'cluster', what: 'one cluster', path: `/v1/clusters/${filled.slug}`, headers, peers },
  ];
  const answers: Record<string, Answer> = {};
  for (const { id, path } of targets) {
    // The first brings it into memory.
    await fetchAnswer(port, path, headers);
    const answer = await fetchAnswer(port, path, headers);
    const tier = headerOf(answer, 'fleetbook-tier');
    if (answer.status !== 200 || tier !== 'memory')
      throw new Error(`${path} was answered ${answer.status} by ${tier}, and not 200 by memory`);
    answers[id] = answer;
  }
  const path = list(filled.small);
  const conditional = { ...headers, 'if-none-match': headerOf(answers.list, 'etag') ?? '' };
  const unchanged = await fetchAnswer(port, path, conditional);
  if (unchanged.status !== 304)
    throw new Error(`If-None-Match was answered ${unchanged.status}, and not 304`);
  answers.unchanged = unchanged;
  targets.push({ id: 'unchanged', what: '304', path, headers: conditional, peers: ['bare'] });
  return { targets, answers };
}

function headerOf(answer: Answer | undefined, wanted: string): string | undefined {
  return answer?.headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
}
