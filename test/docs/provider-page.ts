/**
 * The commands of docs/adding-a-provider.md. `node test/docs/provider-page.ts` runs all of them, unchanged, in a clone of the
 * last commit, and takes minutes. `npm test` runs a shorter form.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

export interface PageCommand {
  readonly command: string;
  /** Whether the page says that the command fails. */
  readonly fails: boolean;
}

/** Returns the commands up to the part about the reader's own API. */
export function pageCommands(): PageCommand[] {
  const [page = ''] = readFileSync(join(ROOT, 'docs/adding-a-provider.md'), 'utf8').split('## Your API');
  return [...page.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) =>
    block
      .trim()
      .split('\n')
      .map((line) => {
        const [command = '', comment = ''] = line.split(/ +# /);
        return { command, fails: comment.startsWith('fails') };
      }),
  );
}

if (import.meta.main) {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-provider-'));
  execFileSync('git', ['clone', '--quiet', ROOT, folder.path]);
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder.path });
  const started = performance.now();
  for (const { command, fails } of pageCommands()) {
    const { status } = spawnSync('bash', ['-c', command], {
      cwd: folder.path,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    console.log(`${seconds} s: ${command}: exit code ${status}`);
    if ((status !== 0) !== fails) {
      console.error(`the page says that this command ${fails ? 'fails' : 'succeeds'}`);
      process.exitCode = 1;
      break;
    }
  }
}
