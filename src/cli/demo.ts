import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { Disposer } from '../app/disposer.ts';
import type { CommandContext } from '../app/feature.ts';
import { SETTINGS } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import { AWS_PATH } from '../dev/sample/aws.ts';
import {
  Market,
  OWN_HARDWARE,
  OWN_HARDWARE_PATH,
  OWN_HARDWARE_TOKEN,
  RATES_PATH,
} from '../dev/sample/market.ts';
import { SAMPLE_RATES } from '../dev/sample/rates.ts';
import { sampleSettings, startSampleUpstream } from '../dev/sample/upstream.ts';
import { fillDemo } from './fill-demo.ts';
import { decider } from './terminal/options.ts';
import { print } from './terminal/output.ts';

export function define(program: Command, { given }: CommandContext): void {
  program
    .command('demo')
    .description('run everything on this machine with a month of invented history, and open the console')
    .option('--no-open', 'do not open a browser')
    .action(async ({ open }: { open: boolean }) => demo(given, open));
}

/** Settings of the user that the demo obeys. Any other one could name a server or a provider. */
const OBEYED = ['HOST', 'PORT', 'OPS_HOST', 'OPS_PORT', 'LOG_LEVEL'] as const;
const OF_THE_SYSTEM =
  /^(?:PATH|HOME|USER|LANG|LC_\w+|TZ|TMPDIR|TEMP|TERM|NO_COLOR|DISPLAY|WAYLAND_DISPLAY|XDG_\w+)$/;

async function demo(given: Environment, opensBrowser: boolean): Promise<void> {
  await using closing = new Disposer();
  const market = new Market();
  const { endpointAt } = market;
  const upstream = closing.use(await startSampleUpstream({ endpointAt }));
  const home = resolve(given.FLEETBOOK_HOME || SETTINGS.FLEETBOOK_HOME.fallback);
  const folder = join(home, 'demo');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'sources.json');
  writeFileSync(file, `${JSON.stringify(sourcesFile(upstream.url), undefined, 2)}\n`);
  const kept = Object.entries(given).filter(
    ([name]) => OBEYED.some((obeyed) => obeyed === name) || OF_THE_SYSTEM.test(name),
  );
  const env = {
    // Its held batch and its failing source are wanted: the console shows them.
    LOG_LEVEL: 'error',
    ...Object.fromEntries(kept),
    FLEETBOOK_HOME: home,
    FLEETBOOK_CONFIG: file,
    ...sampleSettings(upstream),
    OWN_HARDWARE_TOKEN,
    CATALOGUE_CURRENCY: SAMPLE_RATES.currency,
    EXCHANGE_RATES_URL: upstream.url + RATES_PATH,
  };
  const { up } = await import('../app/processes/up.ts');
  await up(env, {
    demo: {
      fill: async (config, logger) => {
        const by = decider(config, { reason: 'made by `fleetbook demo`' });
        await fillDemo({ config, logger, market, by, folder });
        market.breakDown();
      },
      onReady: (opsUrl) => {
        print('');
        print(`The console is at ${opsUrl}. Sign in with the token that starts with fbo_.`);
        print('Commands find the demo while it runs, e.g. fleetbook status.');
        if (opensBrowser && process.stdout.isTTY && !given.CI) openBrowser(opsUrl);
      },
    },
  });
}

function sourcesFile(url: string): object {
  return {
    catalogues: [
      {
        id: OWN_HARDWARE,
        adapter: 'price-list',
        url: url + OWN_HARDWARE_PATH,
        tokenEnv: 'OWN_HARDWARE_TOKEN',
        options: { provider: 'Own hardware' },
      },
      { id: 'aws', adapter: 'aws', url: url + AWS_PATH },
    ],
  };
}

/** Opens the page in the user's browser. Without one, the printed address is enough. */
function openBrowser(url: string): void {
  const [command, args] = openerOf(process.platform, url);
  spawn(command, args, { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref();
}

function openerOf(platform: NodeJS.Platform, url: string): [command: string, args: string[]] {
  if (platform === 'darwin') return ['open', [url]];
  if (platform === 'win32') return ['explorer', [url]];
  return ['xdg-open', [url]];
}
