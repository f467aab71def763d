/** Engines and versions of clusters, and the ends of their support. */
import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import { ENGINES } from '../../domain/engine.ts';
import { LIFECYCLE_DAYS } from '../../domain/lifecycle.ts';
import type { ApiFeature } from '../../http/app.ts';
import { type Operation, operation } from '../../http/operation.ts';
import { cursorParameter } from '../../http/protocol/page-cursor.ts';
import {
  countParameter,
  invalidParameter,
  listParameter,
  wordParameter,
} from '../../http/protocol/parameters.ts';
import { CLUSTER_EXAMPLE, slugParameter } from '../../http/routes/clusters.ts';
import { type LifecycleAnswers, type LifecycleOptions, lifecycleAnswers } from './answers.ts';
import { type ClusterDetailsDocument, clusterDetailsSchema, lifecycleSchema } from './schemas.ts';

export const readLifecycle = ({ documents }: ReaderContext): ReaderPart => ({
  api: lifecycleApi({ documents }),
});

export const lifecycleApi =
  (options: LifecycleOptions): ApiFeature =>
  () => ({ operations: lifecycleOperations(lifecycleAnswers(options)) });

const { slug, name, status, provider, region } = CLUSTER_EXAMPLE;
const EXAMPLE: ClusterDetailsDocument = {
  cluster: { slug, name, status, provider, region },
  engine: 'postgresql',
  version: '14.15',
  state: 'supported',
  end_of_life: '2026-11-12',
  days_left: 82,
  stated_by: 'endoflife.date',
  cycle: {
    name: '14',
    released_on: '2021-09-30',
    active_until: null,
    end_of_life: '2026-11-12',
    extended_until: null,
    latest: '14.24',
    link: 'https://endoflife.date/postgresql',
  },
  reason: null,
};

const cursor = cursorParameter(2000, 'ui30kDosMSAyMDI2LTExLTEyIGNsdXN0ZXItdGVzdA');
const listParameters = {
  within: countParameter(
    'Days from today: clusters whose version ends by then. Ended ones are always listed',
    [LIFECYCLE_DAYS.least, LIFECYCLE_DAYS.most],
    90,
  ).default(LIFECYCLE_DAYS.standard),
  engine: listParameter(wordParameter('Engines', ENGINES, 'postgresql'), ENGINES.length).optional(),
  limit: countParameter('Most clusters of the answer', [1, 1000], 100).default(100),
  cursor,
};

/** The organization is the token's, and never anything that a request says. */
function lifecycleOperations(answers: LifecycleAnswers): Operation[] {
  return [
    operation({
      path: '/v1/clusters/{slug}/details',
      scope: 'clusters:read',
      parameters: { slug: slugParameter },
      isStrict: true,
      doc: {
        id: 'getClusterDetails',
        summary: 'Engine and version of a cluster, and the end of its support',
        description:
          'As far as the source of the cluster states them. The end is the one that the provider states, else that of the release cycle. The same 404 as for the cluster.',
        answers: () => clusterDetailsSchema,
        example: EXAMPLE,
        extension: true,
      },
      read: (values, { organizationId }) => answers.details(organizationId, values.slug),
      shared: false,
    }),
    operation({
      path: '/v1/lifecycle',
      scope: 'clusters:read',
      parameters: listParameters,
      isStrict: true,
      doc: {
        id: 'listLifecycle',
        summary: "Clusters of the token's organization whose version ends soon, or has ended",
        description:
          'Clusters whose end is unknown are listed too, each with a reason. Supported ones with a later end are only counted. The totals are those of all clusters on every page.',
        answers: () => lifecycleSchema,
        example: {
          within: 90,
          today: '2026-08-22',
          lifecycles_read_at: '2026-08-22T04:50:01.204Z',
          totals: { clusters: 1, ended: 0, ending: 1, unknown: 0 },
          clusters: [EXAMPLE],
          next: null,
        },
        extension: true,
      },
      read: async ({ limit, cursor: begin, ...question }, { organizationId }) =>
        (await answers.list(organizationId, question, { limit, cursor: begin })) ??
        invalidParameter('query', 'cursor', cursor, begin),
      shared: false,
    }),
  ];
}
