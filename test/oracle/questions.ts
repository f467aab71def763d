/** The questions, and their answers at the end of a history. */
import { cyclic, wholeNumber } from '../support/random.ts';
import { type Model, PROVIDER, REGIONS, SLUGS, type Token } from './model.ts';
import type { Question } from './question.ts';

/** Returns a question about a region, a machine, or the clusters of the token's organization. */
export function questionOf(model: Model, { organization }: Token, random: () => number): Question {
  const share = random();
  const pick = wholeNumber(random, 1000);
  if (share < 0.2) return ofRegion(model, cyclic(REGIONS, pick));
  if (share < 0.3) return ofSearch(model, cyclic(REGIONS, pick));
  if (share < 0.55) return ofMachine(model, cyclic([...model.machineIds.keys()], pick));
  if (share < 0.8) return { about: 'clusters', organization, path: '/v1/clusters' };
  const slug = cyclic(SLUGS, pick);
  return { about: 'cluster', organization, slug, path: `/v1/clusters/${slug}` };
}

function ofRegion(model: Model, code: string): Question {
  const region = model.regionIds.get(code);
  return { about: 'region', code, path: `/v1/machines?provider=${PROVIDER.id}&region=${region}` };
}

/** The fields of lists, in order. */
const FIELDS = 'id,name,ram,cpu,price,ram_unit,provider,region';

const ofSearch = (model: Model, code: string): Question => ({
  about: 'search',
  code,
  path: `/v1/machines/search?region=${model.regionIds.get(code)}&fields=${FIELDS}&limit=500`,
});

const ofMachine = (model: Model, key: string): Question => ({
  about: 'machine',
  key,
  path: `/v1/machines/${model.machineIds.get(key)}`,
});

/** Returns every list that a token may request. */
export function everyList(model: Model, { organization }: Token): Question[] {
  return [
    ...REGIONS.flatMap((code) => [ofRegion(model, code), ofSearch(model, code)]),
    { about: 'clusters', organization, path: '/v1/clusters' },
  ];
}

/** Returns the answer after everything is published. */
export function finalAnswer(
  model: Model,
  question: Question,
  token: Token,
): { status: number; body?: string | undefined } {
  const { machines, clusters } = model;
  if (token.revokeBegun !== undefined) return { status: 401 };
  if (question.about === 'region' || question.about === 'search')
    return { status: 200, body: model.region(question.code, machines.newest) };
  if (!token.seesClusters) return { status: 403 };
  const texts = SLUGS.map((slug) => model.cluster(`${token.organization.slug}/${slug}`, clusters.newest));
  return { status: 200, body: `[${texts.filter((text) => text !== undefined).join(',')}]` };
}
