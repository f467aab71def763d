/** Items that an adapter may yield for any answer. */
import { planProblem } from '../../../src/domain/database-plan.ts';
import { EXCLUSION_MEANINGS } from '../../../src/domain/machine.ts';
import { decimal, type SourcePrice } from '../../../src/domain/prices/price.ts';
import type { OfferedRegionPrice } from '../../../src/domain/prices/region-price.ts';
import type { CatalogueItem, ClusterItem } from '../../../src/sources/source.ts';

const CREATED_AT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$/;
const isText = (value: unknown) => typeof value === 'string';
const isNamed = (value: unknown) => isText(value) && value !== '';
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const isSize = (value: unknown) => typeof value === 'number' && Number.isFinite(value) && value >= 0;

/** Returns the fault of an item of a catalogue or a control plane; undefined if it is valid. */
export function wrongItem(item: CatalogueItem | ClusterItem): string | undefined {
  switch (item.kind) {
    case 'offer': {
      const { regionCode, name, cpu, ram, ramUnit, price, excluded } = item.offer;
      if (!isNamed(regionCode) || !isNamed(name)) return 'an offer without a name or region';
      if (!isCount(cpu) || cpu === 0) return `an offer of ${cpu} cpu`;
      if (!isSize(ram) || ram === 0) return `an offer of ${ram} memory`;
      if (ramUnit !== 'Binary' && ramUnit !== 'Decimal') return `an offer in ${ramUnit}`;
      if (excluded !== undefined && !Object.hasOwn(EXCLUSION_MEANINGS, excluded))
        return `an offer excluded as ${excluded}`;
      return (
        wrongPrice(price) ??
        (Number(price.amount) === 0 && excluded === undefined ? 'an offer for nothing' : undefined)
      );
    }
    case 'cluster': {
      const { key, name, status, shards, replicas, createdAt, disks = [], machine } = item.cluster;
      if (!isNamed(key) || !isNamed(name) || !isText(status)) return 'a cluster without key, name or status';
      if (!isCount(shards) || !isCount(replicas))
        return `a cluster of ${shards} shards, ${replicas} replicas`;
      if (!CREATED_AT.test(createdAt) || Number.isNaN(Date.parse(`${createdAt.slice(0, 23)}Z`)))
        return `a cluster created at ${createdAt}`;
      if (machine?.cpu !== undefined && !(isCount(machine.cpu) && isSize(machine.ram)))
        return 'a machine of no size';
      for (const { size, type } of disks) {
        if (!isSize(size)) return `a disk of ${size}`;
        const wrong = type.price && wrongPrice(type.price);
        if (wrong !== undefined) return wrong;
      }
      return undefined;
    }
    case 'region-price':
      return wrongRegionPrice(item.price);
    case 'database-plan':
      return planProblem(item.plan) ?? (isNamed(item.plan.name) ? undefined : 'a plan without a name');
    case 'unread-prices':
      return item.items.length > 0 ? undefined : 'unread prices of no item';
    case 'region':
      return isNamed(item.code) && isNamed(item.name) ? undefined : 'a region without code or name';
    case 'rejected':
      return isText(item.key) && isNamed(item.reason) ? undefined : 'a rejected row without a reason';
    case 'unread':
      return isText(item.regionCode) && isNamed(item.reason)
        ? undefined
        : 'an unread region without a reason';
    case 'as-of':
      return Number.isNaN(Date.parse(item.time)) ? `data of ${item.time}` : undefined;
    case 'total':
      // Any number: a guard compares the two.
      return Number.isFinite(item.advertised) && isCount(item.fetched)
        ? undefined
        : `a total of ${item.advertised}`;
    case 'validator':
    case 'unmodified':
      return isNamed(item.validator.url) ? undefined : 'a validator of nothing';
  }
}

function wrongRegionPrice({ item, name, currency, tiers }: OfferedRegionPrice): string | undefined {
  if (!isNamed(name)) return `a price of ${item} without a name`;
  if (tiers[0]?.from !== '0') return `a price of ${item} that does not begin at 0`;
  for (const { from, amount } of tiers) {
    if (decimal(from) !== from) return `a step from ${from}`;
    const wrong = wrongPrice({ amount, per: 'month', currency });
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function wrongPrice({ amount, per, currency }: SourcePrice): string | undefined {
  if (!/^\d+(\.\d+)?$/.test(amount) || decimal(amount) !== amount) return `a price of ${amount}`;
  if (!['minute', 'hour', 'month'].includes(per)) return `a price per ${per}`;
  return /^[A-Z]{3}$/.test(currency) ? undefined : `a price in ${currency}`;
}
