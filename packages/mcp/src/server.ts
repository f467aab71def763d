/** The tools as an MCP server offers them. */
import { type CallToolResult, McpServer, type ServerContext } from '@modelcontextprotocol/server';
import type { FleetbookClient } from '../../client/src/index.ts';
import { failureText } from './failure.ts';
import {
  compareInput,
  compareOutput,
  getClusterInput,
  getClusterOutput,
  listClustersInput,
  listClustersOutput,
  recommendInput,
  recommendOutput,
  searchInput,
  searchOutput,
} from './schemas.ts';
import { comparePrices, getCluster, listClusters, recommendMachine, searchMachines } from './tools.ts';

export interface McpOptions {
  readonly client: FleetbookClient;
  /** Where that asks, for what is told of failures. */
  readonly url: string;
  readonly version: string;
  /** Hears of errors that nobody expected. */
  failed(error: unknown): void;
}

const INSTRUCTIONS = `Fleetbook knows cloud machines with their prices at many providers, and the database clusters of the
user's organization. It only reads. Prices are list prices on demand, without tax, in the currency that each answer names.
Search for machines by what they must have, ask for a recommendation when only the cheapest that fits counts, and compare prices
to see providers side by side with what they have cost before.`;

const READ_ONLY = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true };

/** One connection's server. */
export function mcpServer(options: McpOptions): McpServer {
  const server = new McpServer(
    { name: 'fleetbook', title: 'Fleetbook', version: options.version },
    { instructions: INSTRUCTIONS },
  );
  const call: Call = (ctx, work) => callTool(options, ctx, work);
  addMachineTools(server, options.client, call);
  addClusterTools(server, options.client, call);
  return server;
}

type Work = (signal: AbortSignal) => Promise<object>;

type Call = (ctx: ServerContext, work: Work) => Promise<CallToolResult>;

/** Runs a tool: its result as data and as text, or why there is none. */
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
    return { content: [text(why ?? 'Something failed in the tool itself.')], isError: true };
  }
}

function addMachineTools(server: McpServer, client: FleetbookClient, call: Call): void {
  server.registerTool(
    'search_machines',
    {
      title: 'Search machines',
      description:
        'Finds cloud machines of all providers by CPUs, memory, price, place and kind; the cheapest first unless told otherwise. Give `next` of an answer as `cursor` for more.',
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
        'The cheapest machine that has at least so many CPUs and so much memory, one of each provider, with what it costs for the hours that it runs.',
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
        'Compares a machine (machine_id), or a shape (cpu and ram), with the cheapest that has as much at each provider, and tells what each has cost over time.',
      inputSchema: compareInput,
      outputSchema: compareOutput,
      annotations: READ_ONLY,
    },
    (input, ctx) => call(ctx, (signal) => comparePrices(client, input, signal)),
  );
}

function addClusterTools(server: McpServer, client: FleetbookClient, call: Call): void {
  server.registerTool(
    'list_clusters',
    {
      title: 'List clusters',
      description: 'The database clusters of the organization that the token belongs to, the oldest first.',
      inputSchema: listClustersInput,
      outputSchema: listClustersOutput,
      annotations: READ_ONLY,
    },
    (_, ctx) => call(ctx, (signal) => listClusters(client, signal)),
  );
  server.registerTool(
    'get_cluster',
    {
      title: 'Get a cluster',
      description: 'One database cluster of the organization, by its slug.',
      inputSchema: getClusterInput,
      outputSchema: getClusterOutput,
      annotations: READ_ONLY,
    },
    ({ slug }, ctx) => call(ctx, (signal) => getCluster(client, slug, signal)),
  );
}

const text = (content: string) => ({ type: 'text' as const, text: content });
