import type { Command } from 'commander';
import { add, addChange, type Changing, type Env, type Json } from '../../cli/terminal/options.ts';

export function addOperators(program: Command, { env }: { readonly env: Env }): void {
  const operator = program.command('operator').description('operators of the console, and their tokens');
  const load = () => import('./commands.ts');
  const NAME = ['<name>', 'the operator'] as const;
  const ID = ['<id>', 'the number that `operator tokens` shows and `operator token` printed'] as const;
  const EXPIRES = ['--expires <when>', 'e.g. 90d, 12h or 2027-01-31; never unless given'] as const;
  add(operator, 'list', 'show the operators, with role and last use').action(async (options: Json) =>
    (await load()).listOperatorsCommand(env(), options),
  );
  addChange(operator, 'create', 'create an operator, and print a token once')
    .argument('<name>', 'lower-case letters, digits, dots, dashes, underscores or @')
    .requiredOption('--role <role>', 'viewer reads, operator decides and runs, admin manages')
    .option(...EXPIRES)
    .action(async (name: string, options: Changing & { role: string; expires?: string }) =>
      (await load()).createOperatorCommand(env(), name, options),
    );
  addChange(operator, 'token', 'issue another token to an operator, and print it once')
    .argument(...NAME)
    .option('--name <name>', 'the program that uses it, e.g. prometheus; shown in lists and the audit log')
    .option(...EXPIRES)
    .action(async (name: string, options: Changing & { name?: string; expires?: string }) =>
      (await load()).issueTokenCommand(env(), name, options),
    );
  add(operator, 'tokens', 'show the tokens of operators: state, expiry and last use')
    .argument('[name]', 'the operator; all unless given')
    .action(async (name: string | undefined, options: Json) =>
      (await load()).listTokensOfOperators(env(), name, options),
    );
  addChange(operator, 'revoke', 'revoke a token of an operator; its sessions end within a second')
    .argument(...ID)
    .action(async (id: string, options: Changing) =>
      (await load()).revokeTokenOfOperator(env(), id, options),
    );
  addChange(operator, 'rotate', 'replace a token with a new one, and print it once')
    .argument(...ID)
    .option('--grace <span>', 'time for which the old token stays good, e.g. 1h; none unless given')
    .action(async (id: string, options: Changing & { grace?: string }) =>
      (await load()).rotateTokenOfOperator(env(), id, options),
    );
  addChange(operator, 'set-role', 'change the role of an operator at once')
    .argument(...NAME)
    .argument('<role>', 'viewer, operator or admin')
    .action(async (name: string, role: string, options: Changing) =>
      (await load()).setRoleCommand(env(), name, role, options),
    );
  // Operators of an earlier release may still run this command: it names its replacement.
  operator
    .command('set-password', { hidden: true })
    .argument('[arguments...]')
    .allowUnknownOption()
    .action(async () => (await load()).setPasswordCommand());
  addChange(operator, 'use-oidc', 'let an operator sign in by OpenID Connect instead of tokens')
    .argument(...NAME)
    .action(async (name: string, options: Changing) => (await load()).useOidcCommand(env(), name, options));
  for (const change of ['disable', 'enable'] as const) {
    addChange(operator, change, `${change} an operator; the name stays taken, the sessions end`)
      .argument(...NAME)
      .action(async (name: string, options: Changing) =>
        (await load()).setDisabledCommand(env(), name, change === 'disable', options),
      );
  }
}
