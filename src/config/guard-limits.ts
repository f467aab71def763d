/** What each limit of the guards means to an operator: the form of the file and its documentation are made from it. */
import { z } from 'zod';
import { DEFAULT_GUARD_LIMITS, type GuardLimits } from '../sync/guard.ts';

interface LimitDescription {
  readonly unit: string;
  readonly describe: string;
  readonly shape: z.ZodNumber;
}

const factor = z.number().min(0);
/** A larger share would switch its guard off. */
const share = factor.max(1, { error: 'must be a share from 0 to 1, e.g. 0.2 for 20 %' });

export const LIMITS: Readonly<Record<keyof GuardLimits, LimitDescription>> = {
  removedShare: {
    unit: 'share of the known rows',
    describe:
      'how many machines (or clusters) one run may take from readers: not listed any more, or excluded now for another reason than stock',
    shape: share,
  },
  addedShare: {
    unit: 'share of the known rows',
    describe: 'how many may be new, which may be more than are known; the first run of a source is free',
    shape: factor,
  },
  repricedShare: {
    unit: 'share of the known rows',
    describe: 'how many may have another price',
    shape: share,
  },
  priceRatio: {
    unit: 'factor, from 1',
    describe: 'by which a published price may rise or fall; few prices beyond it are quarantined',
    shape: z.number().min(1),
  },
  reshapedShare: {
    unit: 'share of the known rows',
    describe: 'how many may have other vCPUs or memory: they hardly ever do, but a unit may be mistaken',
    shape: share,
  },
  duplicateShare: {
    unit: 'share of the rows read',
    describe: 'how many may be listed more than once; few of them are quarantined',
    shape: share,
  },
  incompleteShare: {
    unit: 'share of what the upstream announced',
    describe: 'how much of it may be missing',
    shape: share,
  },
  rejectedShare: {
    unit: 'share of the rows read',
    describe: 'how many may be unusable, that is quarantined',
    shape: share,
  },
  smallCount: {
    unit: 'count',
    describe: 'so many rows may always go, come, change or be rejected, whatever their share is',
    shape: z.int().min(0),
  },
  maxHourlyPrice: {
    unit: 'price per hour, in `CATALOGUE_CURRENCY`',
    describe: 'a row with a higher price is rejected',
    shape: z.number().positive(),
  },
};

type LimitShapes = { readonly [K in keyof GuardLimits]: z.ZodOptional<z.ZodNumber> };

/** The field `limits` of a source in the file. */
export const limitsShape = z.strictObject(
  Object.fromEntries(
    Object.entries(LIMITS).map(([name, { unit, describe, shape }]) => [
      name,
      shape
        .optional()
        .describe(`${describe} (${unit}); ${DEFAULT_GUARD_LIMITS[name as keyof GuardLimits]} when absent`),
    ]),
  ) as LimitShapes,
);
