/** The MCP server with its tools. */
import { type CallToolResult, McpServer, type ServerContext } from '@modelcontextprotocol/server';
import type { FleetbookClient } from '../../client/src/index.ts';
import { failureText } from './failure.ts';
import {
  cheaperMachinesInput,
  cheaperMachinesOutput,
  clusterCostInput,
  clusterCostOutput,
  clusterVersionsInput,
  clusterVersionsOutput,
  compareInput,
  compareOutput,
  getClusterInput,
  getClusterOutput,
  listClustersInput,
  listClustersOutput,
  listProvidersInput,
  listProvidersOutput,
  recommendInput,
  recommendOutput,
  searchInput,
  searchOutput,
} from './schemas.ts';
import {
  cheaperMachines,
  clusterCost,
  clusterVersions,
  comparePrices,
  getCluster,
  listClusters,
  listProviders,
  recommendMachine,
  searchMachines,
} from './tools.ts';

export interface McpOptions {
  readonly client: FleetbookClient;
  /** The address of the API, for error messages. */
  readonly url: string;
  readonly version: string;
  /** Receives unexpected errors. */
  failed(error: unknown): void;
}

const INSTRUCTIONS = `Fleetbook lists cloud machines of many providers with their prices, and the database clusters of the
user's organization. It is read-only. Prices are without tax, in the currency that each answer names. They are the organization's
own prices where it has any (price_source: book), list prices otherwise, and on demand unless a call names a term; past prices are list
prices. Use search_machines to filter machines, recommend_machine to get the cheapest machine that fits at each provider, with
storage, traffic and addresses, and compare_prices to compare providers, with past prices. cluster_cost states what clusters cost,
and cheaper_machines finds machines that cost less for a cluster. cluster_versions states engine and version of clusters, and when
their support ends. list_providers names providers and regions.`;

const READ_ONLY = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true };

/** Creates the server of one connection. */
export function mcpServer(options: McpOptions): McpServer {
  const server = new McpServer(
    { name: 'fleetbook', title: 'Fleetbook', version: options.version },
    { instructions: INSTRUCTIONS },
  );
  const call: Call = (ctx, work) => callTool(options, ctx, work);
  addMachineTools(server, options.client, call);
  addClusterTools(server, options.client, call);
  addCostTools(server, options.client, call);
  return server;
}

type Work = (signal: AbortSignal) => Promise<object>;

type Call = (ctx: ServerContext, work: Work) => Promise<CallToolResult>;

/** Runs a tool. Returns its result as data and as text, or its error message. */
async function callTool(
  { url, failed }: McpOptions,
  ctx: ServerContext,
  work: Work,
): Promise<CallToolResult> {
  try {
    const result = await work(ctx.mcpReq.signal);
    return { content: [text(JSON.stringify(result))], structuredContent: { ...result } };
  } catch (error) {
    const why = failureText(error, url);
    if (why === undefined) failed(error);
    return { content: [text(why ?? 'The tool failed because of an internal error.')], isError: true };
  }
}

function addMachineTools(server: McpServer, client: FleetbookClient, call: Call): void {
  server.registerTool(
    'list_providers',
    {
      title: 'List providers',
      description: 'Lists the cloud providers of the catalogue and their regions, with names, codes and ids.',
      inputSchema: listProvidersInput,
      outputSchema: listProvidersOutput,
      annotations: READ_ONLY,
    },
    (_, ctx) => call(ctx, (signal) => listProviders(client, signal)),
  );
  server.registerTool(
    'search_machines',
    {
      title: 'Search machines',
      description:
        'Finds cloud machines of all providers by CPUs, memory, price, region, country, continent and kind, cheapest first by default. For the next page, pass `next` of an answer as `cursor`.',
      inputSchema: searchInput,
      outputSchema: searchOutput,
      annotations: READ_ONLY,
    },
    (input, ctx) => call(ctx, (signal) => searchMachines(client, input, signal)),
  );
  server.registerTool(
    'recommend_machine',
    {
      title: 'Recommend a machine',
      description:
        'Returns, for each provider, the cheapest machine with at least the given CPUs and memory, and its cost for the given hours, with block storage, outgoing traffic and IPv4 addresses if they are needed.',
      inputSchema: recommendInput,
      outputSchema: recommendOutput,
      annotations: READ_ONLY,
    },
    (input, ctx) => call(ctx, (signal) => recommendMachine(client, input, signal)),
  );
  server.registerTool(
    'compare_prices',
    {
      title: 'Compare prices',
      description:
        'Compares a machine (machine_id) or a size (cpu and ram) with the cheapest machine of at least that size at each provider, with past prices.',
      inputSchema: compareInput,
      outputSchema: compareOutput,
      annotations: READ_ONLY,
    },
    (input, ctx) => call(ctx, (signal) => comparePrices(client, input, signal)),
  );
}

function addCostTools(server: McpServer, client: FleetbookClient, call: Call): void {
  server.registerTool(
    'cluster_cost',
    {
      title: 'Cost of clusters',
      description:
        'Returns what a cluster costs (slug), with the price of its machine and disks, or what all clusters cost, with totals by provider and region. For the next page of clusters, pass `next` of an answer as `cursor`.',
      inputSchema: clusterCostInput,
      outputSchema: clusterCostOutput,
      annotations: READ_ONLY,
    },
    (input, ctx) => call(ctx, (signal) => clusterCost(client, input, signal)),
  );
  server.registerTool(
    'cheaper_machines',
    {
      title: 'Cheaper machines for a cluster',
      description:
        'Finds machines that cost less for a cluster, with at least its CPUs and bytes of memory, and the same architecture and kind of CPU where both are known: in its region, with its provider, and anywhere, with the saving in a month and the facts compared.',
      inputSchema: cheaperMachinesInput,
      outputSchema: cheaperMachinesOutput,
      annotations: READ_ONLY,
    },
    (input, ctx) => call(ctx, (signal) => cheaperMachines(client, input, signal)),
  );
}

function addClusterTools(server: McpServer, client: FleetbookClient, call: Call): void {
  server.registerTool(
    'list_clusters',
    {
      title: 'List clusters',
      description: 'Lists the database clusters of the token’s organization, oldest first.',
      inputSchema: listClustersInput,
      outputSchema: listClustersOutput,
      annotations: READ_ONLY,
    },
    (_, ctx) => call(ctx, (signal) => listClusters(client, signal)),
  );
  server.registerTool(
    'cluster_versions',
    {
      title: 'Versions of clusters and their ends',
      description:
        'Returns engine and version of a cluster (slug) and the last day of its support, or all clusters whose version has ended, ends within the days, or has an unknown end. For the next page, pass `next` of an answer as `cursor`.',
      inputSchema: clusterVersionsInput,
      outputSchema: clusterVersionsOutput,
      annotations: READ_ONLY,
    },
    (input, ctx) => call(ctx, (signal) => clusterVersions(client, input, signal)),
  );
  server.registerTool(
    'get_cluster',
    {
      title: 'Get a cluster',
      description: 'Returns one database cluster of the organization by its slug.',
      inputSchema: getClusterInput,
      outputSchema: getClusterOutput,
      annotations: READ_ONLY,
    },
    ({ slug }, ctx) => call(ctx, (signal) => getCluster(client, slug, signal)),
  );
}

const text = (content: string) => ({ type: 'text' as const, text: content });
