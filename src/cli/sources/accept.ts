import type { Command } from 'commander';
import { acceptedPrice } from '../../app/actions/inputs.ts';
import type { CommandContext } from '../../app/feature.ts';
import type { Environment } from '../../config/config.ts';
import { acceptPrice } from '../../db/prices/prices.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { openWriter } from '../terminal/open.ts';
import { addChange, type Changing, readArguments, SOURCE } from '../terminal/options.ts';
import { show } from '../terminal/output.ts';

export function define(program: Command, { env }: CommandContext): void {
  addChange(program, 'accept', 'accept a quarantined price that changed by too large a factor')
    .argument(...SOURCE)
    .argument('<machine>', 'row that `rejected` shows, e.g. cx22@fsn1')
    .argument('<amount>', 'price that `rejected` shows')
    .action((id: string, machine: string, amount: string, options) =>
      acceptCommand(env(), id, { machine, amount }, options),
    );
}

async function acceptCommand(
  env: Environment,
  source: string,
  given: { readonly machine: string; readonly amount: string },
  options: Changing,
): Promise<void> {
  const price = acceptedPrice(`\`fleetbook rejected ${source}\``);
  const { machine, amount } = readArguments(price, given, { machine: 'machine', amount: 'amount' });
  await using writer = await openWriter(env, options);
  const accepted = await acceptPrice(writer.store.db, source, machine, amount, writer.by);
  if (accepted.outcome === 'none') {
    throw new UsageFailure(
      `no price of "${machine}" is quarantined in ${source}; see: fleetbook rejected ${source}`,
    );
  }
  const text = `${accepted.price.amount} ${accepted.price.currency} per ${accepted.price.per}`;
  if (accepted.outcome === 'other') {
    throw new CommandFailure(
      `${source}: nothing is accepted: the price of ${machine} is ${text} now. To accept this price: fleetbook accept ${source} ${machine} ${accepted.price.amount}`,
    );
  }
  show(
    options,
    { source, machine, price: accepted.price, by: writer.by.by },
    () => `${source}: ${text} is accepted for ${machine}; the next run stores it: fleetbook sync ${source}`,
  );
}
