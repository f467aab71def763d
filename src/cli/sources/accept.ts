import type { Environment } from '../../config/config.ts';
import { acceptPrice } from '../../db/prices.ts';
import { type DeciderOptions, decider } from '../terminal/arguments.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { openWriter } from '../terminal/open.ts';
import { print, printJson } from '../terminal/print.ts';

/** Accepts the price of one machine that is quarantined because it changes by more than `priceRatio`. */
export async function acceptCommand(
  env: Environment,
  source: string,
  machine: string,
  amount: string,
  options: DeciderOptions & { json?: boolean },
): Promise<void> {
  if (!/^\d{1,30}(?:\.\d{1,30})?$/.test(amount)) {
    throw new UsageFailure(
      `"${amount}" is no price; give the amount that \`fleetbook rejected ${source}\` shows, e.g. 0.0119`,
    );
  }
  const { config, writer } = openWriter(env);
  await using _ = writer;
  const by = decider(config, options);
  const accepted = await acceptPrice(writer.store.db, source, machine, amount, by);
  if (accepted.outcome === 'none') {
    throw new UsageFailure(
      `no price of "${machine}" is quarantined in ${source}; see: fleetbook rejected ${source}`,
    );
  }
  const price = `${accepted.price.amount} ${accepted.price.currency} per ${accepted.price.per}`;
  if (accepted.outcome === 'other') {
    throw new CommandFailure(
      `${source}: nothing is accepted: the price of ${machine} is ${price} by now. If that one is right: fleetbook accept ${source} ${machine} ${accepted.price.amount}`,
    );
  }
  if (options.json) return printJson({ source, machine, price: accepted.price, by: by.by });
  print(`${source}: ${price} is accepted for ${machine}; the next run stores it: fleetbook sync ${source}`);
}
