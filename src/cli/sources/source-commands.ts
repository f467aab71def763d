/** Commands about sources, what they brought and what is held. */
import type { Command } from 'commander';
import type { PageOptions } from '../terminal/arguments.ts';
import {
  ALL_ROWS,
  add,
  addChange,
  BY,
  type Changing,
  type Deciding,
  type Env,
  JSON_OPTION,
  JSON_ROWS,
  type Json,
  LIMIT,
  pages,
  REASON,
  rows,
  SOURCE,
  SOURCES,
} from '../terminal/command-parts.ts';
import type { FindClustersOptions, FindMachinesOptions } from '../terminal/find.ts';

const PROVIDER = ['--provider <provider>', 'of this provider alone, by name or id'] as const;

/** Adds the commands about sources. `--help` lists them in this order. */
export function addSources(program: Command, env: Env): void {
  addChange(program, 'sync', 'sync sources now, one after the other, and publish what changed')
    .argument('<source...>', 'ids of configured sources, e.g. hetzner')
    .action(async (ids: string[], options: Changing) =>
      (await import('./sync.ts')).syncCommand(env(), ids, options),
    );
  add(program, 'status', 'show every source: last run, last success, next slot, counts, held batches')
    .option('--watch', 'draw it again every two seconds, until q')
    .action(async (options: Json & { watch?: boolean }) =>
      (await import('../status.ts')).statusCommand(env(), options),
    );
  addRejected(program, env);
  addRuns(program, env);
  add(program, 'accept', 'accept one price that is quarantined because it changed by too large a factor')
    .argument(...SOURCE)
    .argument('<machine>', 'the row that `rejected` shows, e.g. cx22@fsn1')
    .argument('<amount>', 'the price that `rejected` shows')
    .option(...REASON)
    .option(...BY)
    .action(async (id: string, machine: string, amount: string, options: Deciding) =>
      (await import('./accept.ts')).acceptCommand(env(), id, machine, amount, options),
    );
  addFind(program, env);
  const source = program.command('source').description('sources: what they are, and whether they are read');
  addSource(source, env);
  addSwitches(source, env);
  addRetire(source, env);
}

/** The rows of a source that readers do not see. */
function addRejected(program: Command, env: Env): void {
  const load = () => import('./rejected.ts');
  rows(program.command('rejected'))
    .description('show the rows of a source that cannot be used, and why')
    .action(async (id: string, page: PageOptions) => (await load()).rejectedCommand(env(), id, page));
  rows(program.command('excluded'))
    .description('show the machines of a source that are not published, and why')
    .action(async (id: string, page: PageOptions) => (await load()).excludedCommand(env(), id, page));
}

/** The runs of a source, and what they have changed. */
function addRuns(program: Command, env: Env): void {
  const runs = () => import('../runs/runs.ts');
  rows(program.command('runs'))
    .description('show the runs of a source, the newest first')
    .action(async (id: string, page: PageOptions) => (await runs()).runsCommand(env(), id, page));
  pages(
    program.command('run').argument('<run>', 'number of the run, which `runs` shows'),
    'rows of each kind',
  )
    .description('show what one run has changed, before and after, and its requests to the upstream')
    .action(async (id: string, page: PageOptions) => (await runs()).runCommand(env(), id, page));
  pages(program.command('changes'), 'rows of each kind')
    .description('show what has changed since a time: prices, arrivals, departures')
    .requiredOption('--since <when>', 'e.g. 24h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z')
    .option(...PROVIDER)
    .action(async (options: PageOptions & { since: string; provider?: string }) =>
      (await import('../runs/changes.ts')).changesCommand(env(), options),
    );
}

/** Finds machines, clusters and prices. */
function addFind(program: Command, env: Env): void {
  pages(program.command('machines').argument('[text]', 'part of the name'), 'machines')
    .description('list machines with their ids, the cheapest first, also those that are not published')
    .option(...PROVIDER)
    .option('--region <code>', 'of this region alone')
    .action(async (text: string | undefined, options: FindMachinesOptions) =>
      (await import('../terminal/find.ts')).machinesCommand(env(), text, options),
    );
  pages(program.command('clusters').argument('[text]', 'part of the name or slug'), 'clusters')
    .description('list clusters with their ids and slugs, by organization')
    .option('--org <slug>', 'of this organization alone')
    .option(...PROVIDER)
    .action(async (text: string | undefined, options: FindClustersOptions) =>
      (await import('../terminal/find.ts')).clustersCommand(env(), text, options),
    );
  add(program, 'prices', 'draw what a machine has cost')
    .argument('<machine>', 'name@region, e.g. cx22@fsn1, or the id that `machines` shows')
    .action(async (machine: string, options: Json) =>
      (await import('./prices.ts')).pricesCommand(env(), machine, options),
    );
}

/** Shows sources. */
function addSource(source: Command, env: Env): void {
  const loadList = () => import('./source.ts');
  add(source, 'list', 'show every source: adapter, state, schedule in words, next slot').action(
    async (options: Json) => (await loadList()).sourceListCommand(env(), options),
  );
  source
    .command('show')
    .argument(...SOURCE)
    .option(...LIMIT('regions'))
    .option(...ALL_ROWS)
    .option(...JSON_ROWS)
    .description('show one source: next slots, freshness of each region, where each setting comes from')
    .action(async (id: string, page: PageOptions) => (await loadList()).sourceShowCommand(env(), id, page));
}

/** Stops the reading of sources, and starts it again. */
function addSwitches(source: Command, env: Env): void {
  const loadSwitch = () => import('./source-switch.ts');
  add(source, 'disable', 'let no schedule, watch or command read sources; what they have published stays')
    .argument(...SOURCES)
    .option(...REASON)
    .option(...BY)
    .action(async (ids: string[], options: Deciding) =>
      (await loadSwitch()).disableSourceCommand(env(), ids, options),
    );
  add(source, 'enable', 'let disabled sources be read again; the latest slot that they missed runs soon')
    .argument(...SOURCES)
    .option(...REASON)
    .option(...BY)
    .action(async (ids: string[], options: Deciding) =>
      (await loadSwitch()).enableSourceCommand(env(), ids, options),
    );
  add(source, 'cancel', 'cancel the runs of sources that are under way; nothing of them is stored')
    .argument(...SOURCES)
    .option(...REASON)
    .option(...BY)
    .action(async (ids: string[], options: Deciding) =>
      (await loadSwitch()).cancelRunCommand(env(), ids, options),
    );
}

function addRetire(source: Command, env: Env): void {
  source
    .command('retire')
    .argument('<source>', 'id of a source that is not configured any more')
    .option('--yes', 'do not ask')
    .option(...REASON)
    .option(...BY)
    .option('--json', 'as JSON; without --yes what would go')
    .description('show what a source has published, and take it out of publication; its history stays')
    .action(async (id: string, options: Deciding) =>
      (await import('./source.ts')).retireSourceCommand(env(), id, options),
    );
}

export function addHold(hold: Command, env: Env): void {
  const load = () => import('../held/hold.ts');
  const loadDecisions = () => import('../held/hold.ts');
  add(hold, 'list', 'show what is held and why')
    .option('--all', 'also what was decided: when, by whom and why')
    .action(async (options: Json & { all?: boolean }) => (await load()).holdList(env(), options));
  hold
    .command('show')
    .argument(...SOURCE)
    .argument('[batch]', 'number of the batch; the one that waits unless given')
    .option(...LIMIT('rows of each kind of change'))
    .option(...ALL_ROWS)
    .option(...JSON_ROWS)
    .description('show what a held batch would change, or what came of a decided one')
    .action(async (id: string, batch: string | undefined, page: PageOptions) =>
      (await load()).holdShow(env(), id, batch, page),
    );
  for (const decision of ['approve', 'reject'] as const) {
    deciding(hold.command(decision), '[batch]', 'number of the batch; required')
      .description(decision === 'approve' ? 'store the held batch' : 'drop the held batch')
      .action(async (id: string, batch: string | undefined, options: Deciding) =>
        (await loadDecisions()).holdDecide(env(), id, batch, decision, options),
      );
  }
  deciding(hold.command('undo'), '<batch>', 'number of the batch')
    .description('take a decision back, until the next run of the source')
    .action(async (id: string, batch: string, options: Deciding) =>
      (await loadDecisions()).holdUndo(env(), id, batch, options),
    );
}

function deciding(command: Command, batch: string, describe: string): Command {
  return command
    .argument(...SOURCE)
    .argument(batch, describe)
    .option(...REASON)
    .option(...BY)
    .option('--yes', 'do not ask on a terminal')
    .option(...JSON_OPTION);
}
