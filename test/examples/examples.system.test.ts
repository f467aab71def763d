/** Runs the programs and configurations of `examples` literally, against a running Fleetbook with the sample catalogue. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtempDisposable, readFile, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';
import { findProgram } from '../../src/processes/find-program.ts';
import { needs, PROMTOOL } from '../support/needs.ts';
import { CLI } from '../support/program.ts';
import { startUp, temporaryHome, type Up } from '../support/up.ts';
import { httpProvider } from './terraform.ts';

const run = promisify(execFile);
const cleanUp = new AsyncDisposableStack();
afterAll(() => cleanUp.disposeAsync());
let up: Up;

beforeAll(async () => {
  const home = cleanUp.use(await temporaryHome());
  up = cleanUp.use(await startUp(home.path));
}, 180_000);

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function outcomeOf(command: string, args: readonly string[], options: object): Promise<Outcome> {
  try {
    return { code: 0, ...(await run(command, args, { ...options, encoding: 'utf8' })) };
  } catch (error) {
    const { code, stdout, stderr } = error as Outcome;
    return { code, stdout, stderr };
  }
}

/** Copies the example, with the client as its package contains it. */
async function exampleWithClient(name: string) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-example-'));
  await cp(inPackage(`examples/${name}`), folder.path, { recursive: true });
  const client = join(folder.path, 'node_modules/@fleetbook/client');
  await mkdir(client, { recursive: true });
  await cp(inPackage('packages/client/package.json'), join(client, 'package.json'));
  const entry = inPackage('packages/client/src/index.ts');
  await run(inPackage('node_modules/.bin/rolldown'), [entry, '--dir', join(client, 'dist')]);
  return folder;
}

interface Total {
  readonly machine: {
    readonly name: string;
    readonly provider: { readonly name: string };
    readonly region: { readonly name: string; readonly code: string };
  };
  readonly total: number;
}

const recommended = async (query: string) =>
  ((await up.json(`/v1/machines/recommend?${query}&ram_unit=Decimal`)) as { recommendations: Total[] })
    .recommendations;

describe('the example of the client', () => {
  it('prints the cheapest machine of each provider', async () => {
    await using folder = await exampleWithClient('client');
    const env = { FLEETBOOK_URL: up.url, FLEETBOOK_TOKEN: up.token };
    const found = await outcomeOf(process.execPath, ['cheapest.ts', '4', '8'], { cwd: folder.path, env });
    const lines = (await recommended('cpu=4&ram=8')).map(
      ({ machine, total }) =>
        `${machine.provider.name}: ${machine.name} in ${machine.region.name}, ${total.toFixed(2)} USD a month\n`,
    );
    expect(found).toEqual({ code: 0, stdout: lines.join(''), stderr: '' });
    expect(lines).toHaveLength(2);
  });
});

describe('the budget guard', () => {
  let folder: AsyncDisposable & { readonly path: string };
  beforeAll(async () => {
    folder = cleanUp.use(await exampleWithClient('budget'));
  });
  const guard = async (change: (plan: { budget: object; machines: object[] }) => void = () => {}) => {
    const plan = JSON.parse(await readFile(inPackage('examples/budget/machines.json'), 'utf8'));
    change(plan);
    await writeFile(join(folder.path, 'machines.json'), JSON.stringify(plan));
    const env = { FLEETBOOK_URL: up.url, FLEETBOOK_TOKEN: up.token };
    return outcomeOf(process.execPath, ['budget.ts', 'machines.json'], { cwd: folder.path, env });
  };

  it('accepts machines within the budget, with their prices', async () => {
    expect(await guard()).toEqual({
      code: 0,
      stdout:
        '3 × cx23, Hetzner fsn1: 12.35 USD a month\n' +
        '2 × g6-standard-2, Linode us-ord: 52.56 USD a month\n' +
        '64.91 of 120.00 USD a month: within the budget\n',
      stderr: '',
    });
  });

  it('fails above the budget', async () => {
    const found = await guard((plan) => Object.assign(plan.budget, { month: 64.9 }));
    expect(found).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('64.90 USD a month: above the budget'),
    });
  });

  it.each<[string, object, object, string]>([
    ['a region', {}, { region: 'moon' }, 'machines.json: Hetzner has no region moon\n'],
    ['a machine', {}, { name: 'cx0' }, 'machines.json: Hetzner does not offer cx0 in fsn1 now\n'],
    ['a currency', { currency: 'EUR' }, {}, 'prices are in USD, the budget is in EUR\n'],
  ])('does not guess a price: unknown %s', async (_, budget, machine, stderr) => {
    const found = await guard((plan) => {
      Object.assign(plan.budget, budget);
      Object.assign(plan.machines[0] ?? {}, machine);
    });
    expect(found).toMatchObject({ code: 2, stderr });
  });
});

describe('the example of Karpenter', () => {
  const HEAD = 'region_code,name,cpu,ram,ram_unit,price,per,currency\n';
  /** Prints its arguments, and the file that it would apply. */
  const KUBECTL = '#!/bin/sh\necho "kubectl $*"\nif [ "$1" = apply ]; then cat "$3"; fi\n';

  it('applies own prices, and removes the objects of a kind of capacity without any', async () => {
    await using home = await temporaryHome();
    await writeFile(join(home.path, 'aws.csv'), `${HEAD}eu-central-1,m7i.large,2,8,GiB,0.1008,hour,USD\n`);
    await using aws = await startUp(home.path, { PRICE_LIST_URL: './aws.csv', PRICE_LIST_PROVIDER: 'AWS' });
    const entry = ['price', 'add', '--org', 'default', '--provider', 'AWS', '--discount', '25'];
    const added = await outcomeOf(process.execPath, [CLI, ...entry, '--reason', 'a test'], {
      cwd: home.path,
    });
    expect(added).toMatchObject({ code: 0, stderr: '' });
    const kubectl = join(home.path, 'kubectl');
    await writeFile(kubectl, KUBECTL, { mode: 0o755 });
    const apply = async (region: string) =>
      outcomeOf('sh', [inPackage('examples/karpenter/apply.sh')], {
        env: {
          PATH: `${home.path}:${process.env.PATH}`,
          FLEETBOOK_URL: aws.url,
          FLEETBOOK_TOKEN: aws.token,
          REGION: region,
        },
      });
    const selector = (capacity: string) =>
      `--selector app.kubernetes.io/managed-by=fleetbook,app.kubernetes.io/instance=eu-central-1-${capacity}`;
    const { code, stdout, stderr } = await apply('eu-central-1');
    expect([code, stderr]).toEqual([0, '']);
    const [applied, ...objects] = stdout.split('\n');
    expect(applied).toMatch(/^kubectl apply --filename \S+ --prune --selector /);
    expect(applied).toContain(`${selector('on-demand')} --prune-allowlist karpenter.sh/v1alpha1/NodeOverlay`);
    expect(objects).toContain('  price: "0.0756"');
    expect(objects).toContain('      values: ["m7i.large"]');
    expect(objects).toContain(
      `kubectl delete nodeoverlays.karpenter.sh ${selector('spot')} --ignore-not-found`,
    );
    const refused = await apply('eu-central-9');
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toContain('"parameter":"region"');
  }, 180_000);
});

describe('the example of MCP', () => {
  it('starts a server with the tools, which reads with the token', async () => {
    const cwd = inPackage('examples/mcp');
    const text = await readFile(join(cwd, '.mcp.json'), 'utf8');
    const values: Record<string, string> = { FLEETBOOK_URL: up.url, FLEETBOOK_TOKEN: up.token };
    const { mcpServers } = JSON.parse(
      text.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => values[name] ?? ''),
    ) as {
      mcpServers: Record<string, { command: string; args: string[]; env: Record<string, string> }>;
    };
    const { command = '', args = [], env = {} } = mcpServers.fleetbook ?? {};
    const client = new Client({ name: 'test', version: '1.0.0' });
    const server = {
      command,
      args,
      cwd,
      env: { PATH: process.env.PATH ?? '', ...env },
      stderr: 'ignore' as const,
    };
    await client.connect(new StdioClientTransport(server));
    const { structuredContent } = await client.callTool({
      name: 'recommend_machine',
      arguments: { cpu: 4, ram: 8 },
    });
    await client.close();
    const [cheapest] = await recommended('cpu=4&ram=8');
    expect(JSON.stringify(structuredContent)).toContain(`"name":"${cheapest?.machine.name}"`);
  });
});

describe('the example of Grafana', () => {
  const folder = inPackage('examples/grafana');

  it('gives the dashboard its data source, and reads metrics where Fleetbook has them', async () => {
    const read = (name: string) => readFile(join(folder, name), 'utf8');
    const dashboard = JSON.parse(await readFile(inPackage('docs/monitoring/dashboard.json'), 'utf8')) as {
      templating: { list: { name: string; type: string; query: unknown }[] };
    };
    const variable = dashboard.templating.list.find(({ name }) => name === 'datasource');
    const datasource = await read('provisioning/datasources/prometheus.yml');
    expect(datasource).toContain(`type: ${String(variable?.query)}\n`);
    const compose = await read('compose.yml');
    const [, path] = /path: (\S+)/.exec(await read('provisioning/dashboards/fleetbook.yml')) ?? [];
    expect(compose).toContain(`../../docs/monitoring/dashboard.json:${path}/fleetbook.json:ro`);
    const [, address] = /^ {4}url: http:\/\/(\S+)/m.exec(datasource) ?? [];
    expect(compose).toContain(`--web.listen-address=${address}`);
  });

  it(
    'has a configuration that Prometheus accepts',
    needs(findProgram('promtool') !== undefined, PROMTOOL),
    async () => {
      await using copy = await mkdtempDisposable(join(tmpdir(), 'fleetbook-example-'));
      await cp(folder, copy.path, { recursive: true });
      await writeFile(join(copy.path, 'ops-token'), up.operatorToken);
      await symlink(inPackage('docs/monitoring/alerts.yml'), join(copy.path, 'alerts.yml'));
      const { code, stdout } = await outcomeOf('promtool', ['check', 'config', 'prometheus.yml'], {
        cwd: copy.path,
      });
      expect({ code, stdout }).toEqual({
        code: 0,
        stdout: expect.stringMatching(/SUCCESS: \d+ rules found/),
      });
    },
  );
});

const terraform = findProgram('terraform') ?? findProgram('tofu');

describe('the example of Terraform', () => {
  it('is formatted', needs(terraform !== undefined, 'the program terraform or tofu'), async () => {
    const args = ['fmt', '-check', '-diff', inPackage('examples/terraform')];
    expect(await outcomeOf(terraform ?? '', args, {})).toMatchObject({ code: 0, stdout: '' });
  });

  const provider = terraform === undefined ? undefined : httpProvider(terraform);
  it('finds the cheapest machine', {
    ...needs(provider !== undefined, 'terraform or tofu, and a registry with the provider hashicorp/http'),
    timeout: 240_000,
  }, async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-example-'));
    await cp(provider ?? '', folder.path, { recursive: true });
    const env = { ...process.env, TF_VAR_fleetbook_url: up.url, TF_VAR_fleetbook_token: up.token };
    const options = { cwd: folder.path, env };
    const args = ['apply', '-auto-approve', '-input=false', '-var', 'cpu=4', '-var', 'ram_gb=8'];
    expect(await outcomeOf(terraform ?? '', args, options)).toMatchObject({ code: 0 });
    const { stdout } = await outcomeOf(terraform ?? '', ['output', '-json', 'machine'], options);
    const [{ machine, total } = expect.unreachable()] = await recommended('cpu=4&ram=8');
    expect(JSON.parse(stdout)).toEqual({
      provider: machine.provider.name,
      region: machine.region.code,
      type: machine.name,
      month: total,
    });
  });
});
