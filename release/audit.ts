/**
 * `node release/audit.ts`: known vulnerabilities of the packages of a release, from the registry's advisories. Each one needs a
 * statement in `.vex/fleetbook.openvex.json`, or the check fails. `npm audit --omit=dev` alone would also report packages that no release has.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { components } from './components.ts';

const ROOT = join(import.meta.dirname, '..');

interface Advisory {
  readonly name: string;
  readonly title: string;
  readonly url: string;
  readonly severity: string;
  readonly range: string;
}

export interface Report {
  readonly message?: string;
  readonly vulnerabilities?: Readonly<
    Record<string, { readonly nodes: readonly string[]; readonly via: readonly (string | Advisory)[] }>
  >;
}

export interface Vex {
  readonly timestamp: string;
  readonly last_updated?: string;
  readonly statements: readonly {
    readonly vulnerability: { readonly name: string; readonly aliases?: readonly string[] };
    readonly status: 'not_affected' | 'affected' | 'fixed' | 'under_investigation';
    readonly justification?: string;
    readonly impact_statement?: string;
    readonly action_statement?: string;
  }[];
}

/** Returns one line for each advisory about these paths of the lock file that has no statement, or one that needs an action. */
export function unstated(report: Report, paths: ReadonlySet<string>, vex: Vex): string[] {
  const lines = new Set<string>();
  for (const { nodes, via } of Object.values(report.vulnerabilities ?? {})) {
    if (!nodes.some((node) => paths.has(node))) continue;
    for (const advisory of via) {
      // A text names another package of the report, which has the advisory.
      if (typeof advisory === 'string') continue;
      const id = advisory.url.slice(advisory.url.lastIndexOf('/') + 1);
      const statement = vex.statements.find(
        ({ vulnerability }) => vulnerability.name === id || vulnerability.aliases?.includes(id),
      );
      const status = statement?.status ?? 'no statement';
      if (status === 'not_affected' || status === 'fixed') continue;
      lines.add(
        `${id} (${advisory.severity}) ${advisory.name} ${advisory.range}: ${advisory.title}: ${status}; update the package, or state in .vex/fleetbook.openvex.json why Fleetbook is not affected`,
      );
    }
  }
  return [...lines];
}

function audit(): Report {
  const { stdout, stderr } = spawnSync('npm', ['audit', '--json', '--package-lock-only'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 100_000_000,
  });
  const report = JSON.parse(stdout === '' ? '{}' : stdout) as Report;
  if (report.vulnerabilities === undefined) {
    process.stderr.write(
      `npm audit has no result: ${report.message ?? stderr}\nUse a registry with advisories, such as https://registry.npmjs.org\n`,
    );
    process.exit(2);
  }
  return report;
}

if (import.meta.main) {
  const vex = JSON.parse(readFileSync(join(ROOT, '.vex/fleetbook.openvex.json'), 'utf8')) as Vex;
  // Before the slower bundling, because it may have no result.
  const report = audit();
  const paths = new Set((await components()).map(({ path }) => path));
  const problems = unstated(report, paths, vex);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  const date = new Date().toISOString().slice(0, 10);
  process.stdout.write(
    `${date}: ${paths.size} packages, ${problems.length} advisories without a statement\n`,
  );
  process.exitCode = problems.length === 0 ? 0 : 1;
}
