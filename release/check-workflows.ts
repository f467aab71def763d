/** `node release/check-workflows.ts`: actionlint, zizmor and shellcheck over all workflows and shell scripts. */
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { findProgram } from '../src/processes/find-program.ts';

const ROOT = join(import.meta.dirname, '..');

export interface Tool {
  readonly name: string;
  readonly install: string;
  /** The arguments for these tracked files. */
  readonly args: (files: readonly string[]) => readonly string[];
}

const workflows = (files: readonly string[]) =>
  files.filter((file) => /^\.github\/workflows\/.*\.yml$/.test(file));
const shellScripts = (files: readonly string[]) =>
  files.filter((file) => file.endsWith('.sh') || file === '.ci/run');

export const TOOLS: readonly Tool[] = [
  {
    name: 'actionlint',
    install: 'go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12',
    args: (files) => ['-no-color', ...workflows(files)],
  },
  {
    name: 'zizmor',
    install: 'pipx install zizmor==1.32.0',
    args: (files) => ['--offline', '--no-progress', '--persona=regular', ...workflows(files)],
  },
  { name: 'shellcheck', install: 'apt-get install shellcheck', args: shellScripts },
];

/** Returns the files of the working tree that git does not ignore. */
export function trackedFiles(): string[] {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard'];
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
}

/** Returns the findings of a tool, or an empty text. */
export function findingsOf(tool: Tool, files: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(tool.name, tool.args(files), {
    cwd: ROOT,
    encoding: 'utf8',
  });
  if (error) throw error;
  return status === 0 ? '' : `${stdout}${stderr}`;
}

if (import.meta.main) {
  const files = trackedFiles();
  for (const tool of TOOLS) {
    const findings = findProgram(tool.name)
      ? findingsOf(tool, files)
      : `${tool.name} is not on the PATH; run: ${tool.install}\n`;
    process.stdout.write(`${tool.name}: ${findings === '' ? 'no finding' : `\n${findings}`}\n`);
    if (findings !== '') process.exitCode = 1;
  }
}
