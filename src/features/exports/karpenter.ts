/** Own prices of one region as NodeOverlay objects of Karpenter. See docs/exports.md. */
import { z } from 'zod';
import { inSlices } from '../../domain/event-loop.ts';
import { pricePerHour } from '../../domain/prices/price.ts';
import { PRICE_TERMS, type PriceTerm } from '../../domain/prices/term.ts';
import { problems } from '../../http/openapi-responses.ts';
import { type Operation, operation } from '../../http/operation.ts';
import { invalidParameter, parameter, wordParameter } from '../../http/protocol/parameters.ts';
import { Problem } from '../../http/protocol/problem.ts';
import { documented } from '../../http/schemas.ts';
import {
  entryOf,
  exactPriceOf,
  machineOfRow,
  type PricedIndex,
  type ReadableMarket,
  readPriced,
  rowsOfRegions,
} from '../../market/market.ts';
import type { Answer } from '../../snapshot/document/answer.ts';
import { textBody } from '../../snapshot/document/body.ts';

/** Their Karpenter compares prices in US dollars, and names machines and regions as Fleetbook does. By parameter: the name. */
const PROVIDERS = { aws: 'AWS', azure: 'Azure' } as const;
const CURRENCY = 'USD';

/** Rules of the objects' schema. Two objects with one weight and one machine would be a conflict, so each has its own weight. */
const MAX_WEIGHT = 10_000;
const LABEL_VALUE = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** Machines of one step: each takes some microseconds. */
const ROWS_PER_STEP = 64;

const parameters = {
  provider: wordParameter('Provider of the cluster', ['aws', 'azure'], 'aws'),
  region: parameter(z.string().regex(/^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/), {
    description: 'Region of the cluster, by its code at the provider',
    example: 'eu-central-1',
    expected: 'the code of a region of the provider',
    listedBy: '/v1/providers',
  }),
  term: wordParameter(
    'Term of price. `spot`: prices of spot capacity. Every other term: prices of on-demand capacity',
    PRICE_TERMS,
    'reserved_1y',
  ).default('on_demand'),
};

export function karpenterOperation(market: ReadableMarket): Operation {
  return operation({
    path: '/v1/exports/karpenter.yaml',
    scope: 'machines:read',
    parameters,
    isStrict: true,
    mediaType: 'application/yaml',
    doc: {
      id: 'exportKarpenter',
      summary: 'Own prices as NodeOverlay objects of Karpenter',
      description:
        'One object for each machine of the region whose price differs from what Karpenter reads from the provider: with `on_demand` and `spot` each machine that an entry of the price book gives a price, with a term of commitment each machine that has the term. Prices are per hour in US dollars. A payment upfront is spread over its term.',
      answers: () =>
        documented(z.string(), { description: 'A stream of YAML documents, see docs/exports.md' }),
      example: fileOf('AWS', 'eu-central-1', 'on_demand', [{ name: 'm7i.large', price: '0.0981' }]).next()
        .value,
      extension: true,
      otherResponses: {
        409: problems('The prices cannot be given to Karpenter', {
          wrongCurrency: wrongCurrency('EUR'),
          tooManyMachines: tooManyMachines(MAX_WEIGHT + 1),
        }),
      },
    },
    read: async ({ provider, region: code, term }, { organizationId }) => {
      const { state, priced } = await readPriced(market, { organizationId, term }, 'price');
      const { regions } = state.index;
      const place = regions.findIndex(
        (each) => each.provider.name === PROVIDERS[provider] && each.region.code === code,
      );
      if (place === -1) return invalidParameter('query', 'region', parameters.region, code);
      const currency = regions[place]?.currency ?? CURRENCY;
      if (currency !== CURRENCY) return wrongCurrency(currency);
      const marks = Uint8Array.from(regions, (_, at) => Number(at === place));
      const machines = await inSlices(machinesWithOwnPrice(priced, marks, term));
      if (machines.length > MAX_WEIGHT) return tooManyMachines(machines.length);
      const body = textBody(await inSlices(fileOf(PROVIDERS[provider], code, term, machines)));
      return { body, tier: state.tier, asOf: state.asOf([place]), currency } satisfies Answer;
    },
    // Own prices differ by organization.
    shared: false,
  });
}

interface OwnMachine {
  readonly name: string;
  /** US dollars per hour, a plain decimal. */
  readonly price: string;
}

/**
 * Returns machines in the order of their ids: a new one is the last, so the objects of the others do not change.
 * @param marks 1 for the region
 */
function* machinesWithOwnPrice(
  priced: PricedIndex,
  marks: Uint8Array,
  term: PriceTerm,
): Generator<void, OwnMachine[]> {
  const isKnown = term === 'on_demand' || term === 'spot';
  const found: (OwnMachine & { readonly id: number })[] = [];
  for (const [i, row] of (yield* rowsOfRegions(priced.view.rows, marks)).entries()) {
    if (i % ROWS_PER_STEP === 0) yield;
    if (isKnown && !entryOf(priced, row)) continue;
    const { id = 0, name = '' } = machineOfRow(priced.view, row, ['id', 'name']);
    // No node has another name.
    if (LABEL_VALUE.test(name))
      found.push({ id, name, price: pricePerHour(exactPriceOf(priced, row).price) });
  }
  return found.sort((a, b) => a.id - b.id);
}

/** Writes every text as JSON, which is also YAML. A file of few machines is one step. */
function* fileOf(
  provider: string,
  region: string,
  term: PriceTerm,
  machines: readonly OwnMachine[],
): Generator<void, string> {
  const capacity = term === 'spot' ? 'spot' : 'on-demand';
  const names = new Set<string>();
  const requirement = (key: string, value: string) =>
    `    - key: ${key}\n      operator: In\n      values: [${JSON.stringify(value)}]\n`;
  const parts = [
    `# Own prices of ${provider} ${region}, ${term}, in ${CURRENCY} per hour: ${machines.length} machines.\n`,
  ];
  for (const [i, { name, price }] of machines.entries()) {
    if (parts.length % ROWS_PER_STEP === 0) yield;
    // Names of objects have no capitals and no underscores, and those of Azure's machines have both. A dot is between letters or digits.
    const lower = name
      .toLowerCase()
      .replaceAll('_', '-')
      .replaceAll(/[-.]+/g, (signs) => (signs.includes('.') ? '.' : signs));
    let own = `fleetbook-${region}-${capacity}-${lower}`;
    while (names.has(own)) own += `-${i + 1}`;
    names.add(own);
    parts.push(
      `---\napiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata:\n  name: ${JSON.stringify(own)}\n` +
        `  labels:\n    app.kubernetes.io/managed-by: fleetbook\n` +
        `    app.kubernetes.io/instance: ${JSON.stringify(`${region}-${capacity}`)}\n` +
        `spec:\n  weight: ${i + 1}\n  requirements:\n` +
        requirement('node.kubernetes.io/instance-type', name) +
        requirement('topology.kubernetes.io/region', region) +
        requirement('karpenter.sh/capacity-type', capacity) +
        `  price: ${JSON.stringify(price)}\n`,
    );
  }
  return parts.join('');
}

function wrongCurrency(currency: string): Problem {
  return new Problem(409, {
    type: 'urn:fleetbook:problem:wrong-currency',
    title: 'Wrong currency',
    detail: `Karpenter compares prices in ${CURRENCY}, and the prices here are in ${currency}. The operator sets CATALOGUE_CURRENCY=${CURRENCY}.`,
  });
}

function tooManyMachines(machines: number): Problem {
  return new Problem(409, {
    type: 'urn:fleetbook:problem:too-many-machines',
    title: 'Too many machines',
    detail: `The region has ${machines} machines with a price for Karpenter, and it has ${MAX_WEIGHT} weights, one for each. Limit the price book to the families that the cluster uses.`,
  });
}
