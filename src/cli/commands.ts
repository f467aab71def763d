/** Every command with its arguments and options. What carries one out is loaded when it is called. */
import type { Command } from 'commander';
import { SETTINGS } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import { runningEnvironment } from '../dev/running.ts';
import { type DeciderOptions, type PageOptions, readId } from './arguments.ts';

interface Json {
  readonly json?: boolean;
}
interface OfOrganization extends Json {
  readonly org: string;
}
interface Changing extends DeciderOptions, Json {}
type ChangingOf = Changing & OfOrganization;
interface Deciding extends Changing {
  readonly yes?: boolean;
}

const JSON_OPTION = ['--json', 'as JSON'] as const;
const JSON_ROWS = ['--json', 'as JSON, every row unless --limit is given'] as const;
const LIMIT = (what: string) => ['--limit <count>', `${what} to show; 20 unless given`] as const;
const ALL_ROWS = ['--all', 'every row'] as const;
const BY = [
  '--by <name>',
  'who does it, for the record; FLEETBOOK_OPERATOR, or user@host, unless given',
] as const;
const REASON = ['--reason <text>', 'why, for the record'] as const;
const ORG = ['--org <slug>', 'the organization'] as const;
const SOURCE = ['<source>', 'id of the source'] as const;

/**
 * The environment of a command: where it names no database, the one with which the `up` beside it runs, so that
 * `fleetbook status` needs no settings on the machine where everything runs.
 */
export function commandEnvironment(env: Environment): Environment {
  if (env.DATABASE_URL) return env;
  const running = runningEnvironment(env.FLEETBOOK_HOME || SETTINGS.FLEETBOOK_HOME.fallback);
  return running
    ? { ...running, ...Object.fromEntries(Object.entries(env).filter(([, value]) => value)) }
    : env;
}

/** Adds them all. @param given the environment of this process */
export function addCommands(program: Command, given: Environment): void {
  const env = () => commandEnvironment(given);
  addProcesses(program, given);
  addMaintenance(program, env);
  addSources(program, env);
  addHold(program.command('hold').description('batches that a guard held for a decision'), env);
  addAlerts(program.command('alert').description('what operators are told of, and webhooks'), env);
  addOrganizations(program.command('org').description('organizations'), env);
  addUsers(program.command('user').description('people who made clusters, as control planes name them'), env);
  addTokens(program.command('token').description('API tokens'), env);
  addOperators(program.command('operator').description('accounts of the operators’ pages'), env);
  addAudit(program.command('audit'), env);
  program
    .command('completion')
    .description('print a script by which a shell completes commands and options')
    .argument('<shell>', 'bash, zsh or fish')
    .action(async (shell: string) => (await import('./completion.ts')).completionCommand(program, shell));
}

type Env = () => Environment;

function addOperators(operator: Command, env: Env): void {
  const load = () => import('./operator.ts');
  const NAME = ['<name>', 'the operator'] as const;
  add(operator, 'list', 'show who can sign in, with role and last visit').action(async (options: Json) =>
    (await import('./operator-list.ts')).listOperatorsCommand(env(), options),
  );
  addChange(operator, 'create', 'make an account; its password is asked for, or read from standard input')
    .argument('<name>', 'lower-case letters, digits, dots, dashes, underscores or @')
    .requiredOption('--role <role>', 'viewer reads, operator decides and runs, admin manages')
    .action(async (name: string, options: Changing & { role: string }) =>
      (await load()).createOperatorCommand(env(), name, options),
    );
  addChange(operator, 'set-role', 'give an operator another role, at once')
    .argument(...NAME)
    .argument('<role>', 'viewer, operator or admin')
    .action(async (name: string, role: string, options: Changing) =>
      (await load()).setRoleCommand(env(), name, role, options),
    );
  addChange(operator, 'set-password', 'give an operator another password; sessions end')
    .argument(...NAME)
    .action(async (name: string, options: Changing) =>
      (await load()).setPasswordCommand(env(), name, options),
    );
  for (const change of ['disable', 'enable'] as const) {
    addChange(operator, change, `${change} an account; its name stays taken, its sessions end`)
      .argument(...NAME)
      .action(async (name: string, options: Changing) =>
        (await load()).setDisabledCommand(env(), name, change === 'disable', options),
      );
  }
}

function addAudit(audit: Command, env: Env): void {
  audit
    .description('show who changed what, when, from where and why; the newest first')
    .option('--since <when>', 'e.g. 7d, 24h or 2027-01-31')
    .option(...LIMIT('actions'))
    .option(...ALL_ROWS)
    .option(...JSON_ROWS)
    .action(async (options: PageOptions & { since?: string }) =>
      (await import('./audit.ts')).auditCommand(env(), options),
    );
}

/** Adds a command that ends, and whose result can be had as JSON. */
function add(parent: Command, name: string, description: string): Command {
  return parent
    .command(name)
    .description(description)
    .option(...JSON_OPTION);
}

function addProcesses(program: Command, given: Environment): void {
  program
    .command('up')
    .description('run everything on this machine: PostgreSQL, Redis, workers and the API')
    .option('--live', 'read the public providers that need no credentials, instead of the sample')
    .action(async (options: { live?: boolean }) => (await import('./up.ts')).up(given, options));
  program
    .command('serve')
    .description('serve the API')
    .option(
      '--processes <count>',
      'processes that share the port, or max: one for each core; PROCESSES unless given',
    )
    .action(async (options: { processes?: string }) => (await import('./serve.ts')).serve(given, options));
  program
    .command('work')
    .description('run the schedules, the syncs and the publisher')
    .action(async () => (await import('./work.ts')).work(given));
}

function addMaintenance(program: Command, env: Env): void {
  add(program, 'migrate', 'bring the database to this release').action(async (options: Json) =>
    (await import('./migrate.ts')).migrateCommand(env(), options),
  );
  add(program, 'publish', 'compare the cache with the database and publish what differs').action(
    async (options: Json) => (await import('./publish.ts')).publishCommand(env(), options),
  );
  add(
    program,
    'restored',
    'after a backup was restored: publish everything anew, and run every source again',
  ).action(async (options: Json) => (await import('./restored.ts')).restoredCommand(env(), options));
}

function addSources(program: Command, env: Env): void {
  add(program, 'sync', 'sync one source now, and publish what changed')
    .argument('<source>', 'id of a configured source, e.g. hetzner')
    .action(async (id: string, options: Json) => (await import('./sync.ts')).syncCommand(env(), id, options));
  add(program, 'status', 'show every source: last run, last success, next slot, counts, held batches')
    .option('--watch', 'draw it again every two seconds, until q')
    .action(async (options: Json & { watch?: boolean }) =>
      (await import('./status.ts')).statusCommand(env(), options),
    );
  const load = () => import('./rejected.ts');
  rows(program.command('rejected'))
    .description('show the rows of a source that cannot be used, and why')
    .action(async (id: string, page: PageOptions) => (await load()).rejectedCommand(env(), id, page));
  rows(program.command('excluded'))
    .description('show the machines of a source that are not published, and why')
    .action(async (id: string, page: PageOptions) => (await load()).excludedCommand(env(), id, page));
  const runs = () => import('./runs.ts');
  rows(program.command('runs'))
    .description('show the runs of a source, the newest first')
    .action(async (id: string, page: PageOptions) => (await runs()).runsCommand(env(), id, page));
  pages(
    program.command('run').argument('<run>', 'number of the run, which `runs` shows'),
    'rows of each kind',
  )
    .description('show what one run has changed, before and after')
    .action(async (id: string, page: PageOptions) => (await runs()).runCommand(env(), id, page));
  pages(program.command('changes'), 'rows of each kind')
    .description('show what has changed since a time: prices, arrivals, departures')
    .requiredOption('--since <when>', 'e.g. 24h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z')
    .option('--provider <provider>', 'of this provider alone, by name or id')
    .action(async (options: PageOptions & { since: string; provider?: string }) =>
      (await import('./changes.ts')).changesCommand(env(), options),
    );
  add(program, 'accept', 'accept one price that is quarantined because it changed by too large a factor')
    .argument(...SOURCE)
    .argument('<machine>', 'the row that `rejected` shows, e.g. cx22@fsn1')
    .argument('<amount>', 'the price that `rejected` shows')
    .option(...REASON)
    .option(...BY)
    .action(async (id: string, machine: string, amount: string, options: Deciding) =>
      (await import('./accept.ts')).acceptCommand(env(), id, machine, amount, options),
    );
  add(program, 'prices', 'draw what a machine has cost')
    .argument('<machine>', 'id of a machine')
    .action(async (id: string, options: Json) =>
      (await import('./prices.ts')).pricesCommand(env(), id, options),
    );
  const source = program.command('source').description('sources: what they are, and whether they are read');
  const loadList = () => import('./source-list.ts');
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
  const loadSwitch = () => import('./source-switch.ts');
  add(source, 'disable', 'let no schedule, watch or command read a source; what it has published stays')
    .argument(...SOURCE)
    .option(...REASON)
    .option(...BY)
    .action(async (id: string, options: Deciding) =>
      (await loadSwitch()).disableSourceCommand(env(), id, options),
    );
  add(source, 'enable', 'let a disabled source be read again; a slot that it has missed is made up for')
    .argument(...SOURCE)
    .option(...BY)
    .action(async (id: string, options: Deciding) =>
      (await loadSwitch()).enableSourceCommand(env(), id, options),
    );
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

function rows(command: Command): Command {
  return pages(command.argument(...SOURCE), 'rows');
}

function pages(command: Command, what: string): Command {
  return command
    .option(...LIMIT(what))
    .option(...ALL_ROWS)
    .option(...JSON_ROWS);
}

function addHold(hold: Command, env: Env): void {
  const load = () => import('./hold.ts');
  const loadDecisions = () => import('./hold-decide.ts');
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
    .description('show what the held batch would change')
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

function addAlerts(alert: Command, env: Env): void {
  const load = () => import('./alert.ts');
  const loadList = () => import('./alert-list.ts');
  alert
    .command('list')
    .description('show the alerts that are open')
    .option('--closed', 'also those that are resolved')
    .option(...LIMIT('alerts'))
    .option(...ALL_ROWS)
    .option(...JSON_ROWS)
    .action(async (options: PageOptions & { closed?: boolean }) =>
      (await loadList()).alertList(env(), options),
    );
  alert
    .command('deliveries')
    .description('show what was sent to webhooks')
    .option(...LIMIT('messages'))
    .option(...ALL_ROWS)
    .option(...JSON_ROWS)
    .action(async (options: PageOptions) => (await loadList()).alertDeliveries(env(), options));
  add(alert, 'resend', 'send a message once more')
    .argument('<delivery>', 'the number that `alert deliveries` shows')
    .action(async (id: string, options: Json) =>
      (await load()).alertResend(
        env(),
        readId(id, 'delivery', '`fleetbook alert deliveries` shows'),
        options,
      ),
    );
  add(alert, 'test', 'send a message without an alert to a webhook, at once')
    .argument('<webhook>', 'its id; default is that of ALERT_WEBHOOK_URL')
    .action(async (id: string, options: Json) => (await load()).alertTest(env(), id, options));
}

/** Adds a command whose change is written to the audit log. */
function addChange(parent: Command, name: string, description: string): Command {
  return add(parent, name, description)
    .option(...REASON)
    .option(...BY);
}

function addOrganizations(org: Command, env: Env): void {
  const load = () => import('./org.ts');
  addChange(org, 'create', 'make an organization')
    .argument('<slug>', 'lower-case letters, digits and dashes')
    .option('--name <name>', 'shown to people; the slug unless given')
    .action(async (slug: string, options: Changing & { name?: string }) =>
      (await load()).createOrg(env(), slug, options),
    );
  add(org, 'list', 'show every organization, with its clusters and good tokens')
    .option('--all', 'also those that were deleted')
    .action(async (options: Json & { all?: boolean }) =>
      (await import('./org-list.ts')).listOrgs(env(), options),
    );
  addChange(org, 'rename', 'give an organization another name')
    .argument('<slug>', 'the organization; its slug stays')
    .requiredOption('--name <name>', 'shown to people')
    .action(async (slug: string, options: Changing & { name: string }) =>
      (await load()).renameOrg(env(), slug, options),
    );
  addChange(org, 'delete', 'delete an organization with its clusters, and revoke its tokens')
    .argument('<slug>', 'the organization')
    .option('--yes', 'do not ask for the slug once more')
    .action(async (slug: string, options: Deciding) => (await load()).deleteOrg(env(), slug, options));
}

function addUsers(user: Command, env: Env): void {
  const load = () => import('./user.ts');
  add(user, 'list', 'show who made an organization’s clusters')
    .requiredOption(...ORG)
    .action(async (options: OfOrganization) => (await import('./user-list.ts')).listOrgUsers(env(), options));
  addChange(user, 'rename', 'show a person under another name; one that is there makes one person of two')
    .argument('<id>', 'the number that `user list` shows')
    .requiredOption(...ORG)
    .requiredOption('--first-name <name>', 'may be empty')
    .requiredOption('--last-name <name>', 'may be empty')
    .action(async (id: string, options: ChangingOf & { firstName: string; lastName: string }) =>
      (await load()).renameOrgUser(env(), id, options),
    );
  addChange(user, 'delete', 'show a person’s clusters without a name')
    .argument('<id>', 'the number that `user list` shows')
    .requiredOption(...ORG)
    .action(async (id: string, options: ChangingOf) => (await load()).deleteOrgUser(env(), id, options));
}

function addTokens(token: Command, env: Env): void {
  const load = () => import('./token.ts');
  const ID = ['<id>', 'the number that `token list` shows and `token create` printed'] as const;
  add(token, 'list', 'show tokens: whose, what for, until when, last used')
    .option('--org <slug>', 'of this organization alone')
    .action(async (options: Partial<OfOrganization>) =>
      (await import('./token-list.ts')).listTokensCommand(env(), options),
    );
  addChange(token, 'create', 'make a token and print it, once')
    .requiredOption('--org <slug>', 'the organization that it belongs to')
    .option('--scope <scope...>', 'machines:read, clusters:read; both unless given')
    .option('--expires <when>', 'e.g. 90d, 12h or 2027-01-31')
    .action(async (options: ChangingOf & { scope?: string[]; expires?: string }) =>
      (await load()).createTokenCommand(env(), options),
    );
  addChange(token, 'revoke', 'revoke a token; readers refuse it within a second')
    .argument(...ID)
    .action(async (id: string, options: Changing) => (await load()).revokeTokenCommand(env(), id, options));
  addChange(token, 'rotate', 'make a token in the place of another one, and print it, once')
    .argument(...ID)
    .option('--grace <span>', 'for which the old token stays good, e.g. 1h; none unless given')
    .action(async (id: string, options: Changing & { grace?: string }) =>
      (await load()).rotateTokenCommand(env(), id, options),
    );
}
