import type { Environment } from '../config/source-config.ts';
import { listOperators, type OperatorSummary } from '../db/reads/operators.ts';
import { openReadOnly } from './open-read-only.ts';
import { print, printJson, printText } from './print.ts';
import { ago, alignedTable } from './table.ts';

export async function listOperatorsCommand(env: Environment, options: { json?: boolean }): Promise<void> {
  await using register = openReadOnly(env);
  const operators = await listOperators(register.sql);
  if (options.json) return printJson(operators);
  if (operators.length > 0) printText(operatorTable(operators, new Date()));
  else print('there is no operator; make one: fleetbook operator create <name> --role admin');
}

function operatorTable(operators: readonly OperatorSummary[], now: Date): string {
  return alignedTable(
    ['OPERATOR', 'ROLE', 'SIGNS IN BY', 'STATE', 'MADE', 'LAST SEEN'],
    operators.map(({ name, role, signsInBy, createdAt, disabledAt, lastSeenAt }) => [
      name,
      role,
      signsInBy === 'oidc' ? 'OpenID Connect' : 'password',
      disabledAt === null ? 'enabled' : 'disabled',
      ago(createdAt, now),
      lastSeenAt === null ? 'never' : ago(lastSeenAt, now),
    ]),
  );
}
