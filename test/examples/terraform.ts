/** Finds out whether `terraform init` can install the provider of the example. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inPackage } from '../../src/config/package.ts';

/** The registry is on the Internet, which a machine for tests may lack. */
const INIT_MS = 60_000;

/** @returns a copy of the example with the installed provider; undefined if there is no registry that has it */
export function httpProvider(terraform: string): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'fleetbook-terraform-'));
  cpSync(inPackage('examples/terraform'), folder, { recursive: true });
  try {
    execFileSync(terraform, ['init', '-input=false'], { cwd: folder, stdio: 'pipe', timeout: INIT_MS });
    return folder;
  } catch {
    return undefined;
  }
}
