/** The audit of a release, with a registry that answers as npm's does. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { type Report, unstated, type Vex } from '../../release/audit.ts';
import { inPackage } from '../../src/config/package.ts';

const VEX = JSON.parse(readFileSync(inPackage('.vex/fleetbook.openvex.json'), 'utf8')) as Vex;
const GHSA = 'GHSA-aaaa-bbbb-cccc';

const ADVISORY = {
  id: 1,
  url: `https://github.com/advisories/${GHSA}`,
  title: 'Something bad',
  severity: 'high',
  vulnerable_versions: '>=1.0.0',
  cwe: [],
  cvss: { score: 7, vectorString: null },
};

/** Runs the audit with a registry that has these advisories by package. */
async function auditWith(advisories: Readonly<Record<string, readonly object[]>> | undefined) {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const isBulk = request.method === 'POST' && request.url === '/-/npm/v1/security/advisories/bulk';
      response.writeHead(isBulk && advisories ? 200 : 405, { 'content-type': 'application/json' });
      response.end(JSON.stringify(advisories ?? {}));
    });
  });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => new Promise<void>((resolve) => server.close(() => resolve())));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return await new Promise<{ code: number | string; stdout: string; stderr: string }>((resolve) => {
    execFile(
      process.execPath,
      [inPackage('release/audit.ts')],
      {
        env: {
          ...process.env,
          npm_config_registry: `http://127.0.0.1:${port}/`,
          npm_config_fetch_retries: '0',
        },
      },
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

describe('the audit', () => {
  it('fails for an advisory about a bundled package, and ignores one about a tool of the development', async () => {
    const { code, stderr } = await auditWith({ bullmq: [ADVISORY], vitest: [{ ...ADVISORY, id: 2 }] });
    expect(stderr).toMatch(
      new RegExp(
        `^${GHSA} \\(high\\) bullmq >=1\\.0\\.0: Something bad: no statement; update the package, or .*\n$`,
      ),
    );
    expect(code).toBe(1);
  });

  it('fails if the registry has no advisories, instead of finding nothing', async () => {
    const { code, stderr } = await auditWith(undefined);
    expect(stderr).toContain('npm audit has no result: 405 Method Not Allowed');
    expect(code).toBe(2);
  });
});

describe('a statement', () => {
  const report: Report = {
    vulnerabilities: {
      bullmq: {
        nodes: ['node_modules/bullmq'],
        via: [{ name: 'bullmq', title: 'Bad', url: ADVISORY.url, severity: 'high', range: '*' }],
      },
    },
  };
  const stated = (status: Vex['statements'][number]['status'], name = GHSA): Vex => ({
    timestamp: '2026-01-01T00:00:00Z',
    statements: [{ vulnerability: { name: 'CVE-2026-1', aliases: [name] }, status }],
  });
  const problems = (vex: Vex) => unstated(report, new Set(['node_modules/bullmq']), vex);

  it('that the product is not affected, or is fixed, settles an advisory', () => {
    expect(problems(stated('not_affected'))).toEqual([]);
    expect(problems(stated('fixed'))).toEqual([]);
  });

  it('that the product is affected or under investigation does not', () => {
    expect(problems(stated('affected'))).toEqual([expect.stringContaining(': affected;')]);
    expect(problems(stated('under_investigation'))).toHaveLength(1);
  });

  it('about another advisory does not', () => {
    expect(problems(stated('not_affected', 'GHSA-zzzz-zzzz-zzzz'))).toHaveLength(1);
  });
});

describe('the VEX file', () => {
  it('is valid OpenVEX: each statement has a product, and a reason or an action', () => {
    expect(VEX).toMatchObject({
      '@context': 'https://openvex.dev/ns/v0.2.0',
      '@id': expect.stringMatching(/^https:/),
      author: expect.any(String),
      version: expect.any(Number),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/),
    });
    expect(VEX.statements.length).toBeGreaterThan(0);
    for (const statement of VEX.statements) {
      expect(statement).toMatchObject({
        vulnerability: { name: expect.stringMatching(/^(CVE|GHSA)-/) },
        products: [{ '@id': expect.stringMatching(/^pkg:npm\//) }],
      });
      if (statement.status === 'not_affected') expect(statement.justification).toBeDefined();
      if (statement.status === 'affected') expect(statement.action_statement).toBeDefined();
    }
  });
});
