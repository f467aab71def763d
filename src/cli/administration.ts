import type { Command } from 'commander';
import { commandEnvironment } from './environment.ts';

const JSON_OPTION = ['--json', 'as JSON'] as const;
const ORG_OPTION = ['--org <slug>', 'the organization'] as const;

/** The commands for organizations, their people and their tokens. What carries one out is loaded when it is called. */
export function addAdministration(program: Command): void {
  addOrganizations(program.command('org').description('organizations'));
  addUsers(program.command('user').description('people who made clusters, as control planes name them'));
  addTokens(program.command('token').description('API tokens'));
}

const env = () => commandEnvironment(process.env);

function addOrganizations(org: Command): void {
  const load = () => import('./org.ts');
  org
    .command('create')
    .argument('<slug>', 'lower-case letters, digits and dashes')
    .option('--name <name>', 'shown to people; the slug unless given')
    .option(...JSON_OPTION)
    .description('make an organization')
    .action(async (slug: string, options: { name?: string; json?: boolean }) => {
      await (await load()).createOrg(env(), slug, options);
    });
  org
    .command('list')
    .option('--all', 'also those that were deleted')
    .option(...JSON_OPTION)
    .description('show every organization, with its clusters and good tokens')
    .action(async (options: { all?: boolean; json?: boolean }) => {
      await (await load()).listOrgs(env(), options);
    });
  org
    .command('rename')
    .argument('<slug>', 'the organization; its slug stays')
    .requiredOption('--name <name>', 'shown to people')
    .option(...JSON_OPTION)
    .description('give an organization another name')
    .action(async (slug: string, options: { name: string; json?: boolean }) => {
      await (await load()).renameOrg(env(), slug, options);
    });
  org
    .command('delete')
    .argument('<slug>', 'the organization')
    .option('--yes', 'do not ask for the slug once more')
    .option(...JSON_OPTION)
    .description('delete an organization with its clusters, and revoke its tokens')
    .action(async (slug: string, options: { yes?: boolean; json?: boolean }) => {
      await (await load()).deleteOrg(env(), slug, options);
    });
}

function addUsers(user: Command): void {
  const load = () => import('./user.ts');
  user
    .command('list')
    .requiredOption(...ORG_OPTION)
    .option(...JSON_OPTION)
    .description('show who made an organization’s clusters')
    .action(async (options: { org: string; json?: boolean }) => {
      await (await load()).listOrgUsers(env(), options);
    });
  user
    .command('rename')
    .argument('<id>', 'the number that `user list` shows')
    .requiredOption(...ORG_OPTION)
    .requiredOption('--first-name <name>', 'may be empty')
    .requiredOption('--last-name <name>', 'may be empty')
    .option(...JSON_OPTION)
    .description('show a person under another name; one that is there makes one person of two')
    .action(
      async (id: string, options: { org: string; firstName: string; lastName: string; json?: boolean }) => {
        await (await load()).renameOrgUser(env(), id, options);
      },
    );
  user
    .command('delete')
    .argument('<id>', 'the number that `user list` shows')
    .requiredOption(...ORG_OPTION)
    .option(...JSON_OPTION)
    .description('show a person’s clusters without a name')
    .action(async (id: string, options: { org: string; json?: boolean }) => {
      await (await load()).deleteOrgUser(env(), id, options);
    });
}

function addTokens(token: Command): void {
  const load = () => import('./token.ts');
  const id = ['<id>', 'the number that `token list` shows and `token create` printed'] as const;
  token
    .command('list')
    .option('--org <slug>', 'of this organization alone')
    .option(...JSON_OPTION)
    .description('show tokens: whose, what for, until when, last used')
    .action(async (options: { org?: string; json?: boolean }) => {
      await (await load()).listTokensCommand(env(), options);
    });
  token
    .command('create')
    .requiredOption('--org <slug>', 'the organization that it belongs to')
    .option('--scope <scope...>', 'machines:read, clusters:read; both unless given')
    .option('--expires <when>', 'e.g. 90d, 12h or 2027-01-31')
    .option(...JSON_OPTION)
    .description('make a token and print it, once')
    .action(async (options: { org: string; scope?: string[]; expires?: string; json?: boolean }) => {
      await (await load()).createTokenCommand(env(), options);
    });
  token
    .command('revoke')
    .argument(...id)
    .option(...JSON_OPTION)
    .description('revoke a token; readers refuse it within a second')
    .action(async (text: string, options: { json?: boolean }) => {
      await (await load()).revokeTokenCommand(env(), text, options);
    });
  token
    .command('rotate')
    .argument(...id)
    .option('--grace <span>', 'for which the old token stays good, e.g. 1h; none unless given')
    .option(...JSON_OPTION)
    .description('make a token in the place of another one, and print it, once')
    .action(async (text: string, options: { grace?: string; json?: boolean }) => {
      await (await load()).rotateTokenCommand(env(), text, options);
    });
}
