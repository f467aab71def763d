/** Commands about organizations, people and tokens. */
import type { Command } from 'commander';
import {
  ALL_ROWS,
  add,
  addChange,
  type Changing,
  type ChangingOf,
  type Deciding,
  type Env,
  JSON_ROWS,
  type Json,
  LIMIT,
  type OfOrganization,
  ORG,
} from '../terminal/command-parts.ts';
import type { AuditOptions } from './audit.ts';

export function addAudit(audit: Command, env: Env): void {
  audit
    .description('show who changed what, when, from where and why; the newest first')
    .option('--since <when>', 'e.g. 7d, 24h or 2027-01-31')
    .option('--by <name>', 'what this person did alone')
    .option('--action <name>', 'this action alone, e.g. token.revoke')
    .option('--subject <kind[:id]>', 'what it was done to, e.g. token or organization:acme')
    .option(...LIMIT('actions'))
    .option(...ALL_ROWS)
    .option(...JSON_ROWS)
    .action(async (options: AuditOptions) => (await import('./audit.ts')).auditCommand(env(), options));
}

export function addOrganizations(org: Command, env: Env): void {
  const load = () => import('./org.ts');
  addChange(org, 'create', 'make an organization')
    .argument('<slug>', 'lower-case letters, digits and dashes')
    .option('--name <name>', 'shown to people; the slug unless given')
    .action(async (slug: string, options: Changing & { name?: string }) =>
      (await load()).createOrg(env(), slug, options),
    );
  add(org, 'list', 'show every organization, with its clusters and good tokens')
    .option('--all', 'also those that were deleted')
    .action(async (options: Json & { all?: boolean }) => (await import('./org.ts')).listOrgs(env(), options));
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

export function addUsers(user: Command, env: Env): void {
  const load = () => import('./user.ts');
  add(user, 'list', 'show who made an organization’s clusters')
    .requiredOption(...ORG)
    .action(async (options: OfOrganization) => (await import('./user.ts')).listOrgUsers(env(), options));
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

export function addTokens(token: Command, env: Env): void {
  const load = () => import('./token.ts');
  const ID = ['<id>', 'the number that `token list` shows and `token create` printed'] as const;
  add(token, 'list', 'show tokens: name, organization, scopes, expiry and last use')
    .option('--org <slug>', 'of this organization alone')
    .action(async (options: Partial<OfOrganization>) =>
      (await import('./token.ts')).listTokensCommand(env(), options),
    );
  addChange(token, 'create', 'make a token and print it, once')
    .requiredOption('--org <slug>', 'the organization that it belongs to')
    .option('--name <name>', 'what uses it, e.g. billing; shown in lists and in the audit log')
    .option('--scope <scope...>', 'machines:read, clusters:read; both unless given')
    .option('--expires <when>', 'e.g. 90d, 12h or 2027-01-31')
    .action(async (options: ChangingOf & { name?: string; scope?: string[]; expires?: string }) =>
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
