/** The limits of the guards for operators. The file's schema and its documentation are generated from them. */
import { z } from 'zod';
import { DEFAULT_GUARD_LIMITS, type GuardLimits } from '../sync/guards.ts';

interface LimitDescription {
  readonly unit: string;
  readonly describe: string;
  readonly shape: z.ZodNumber;
}

const factor = z.number().min(0);
/** A larger share would disable its guard. */
const share = factor.max(1, { error: 'must be a share from 0 to 1, e.g. 0.2 for 20 %' });

export const LIMITS: Readonly<Record<keyof GuardLimits, LimitDescription>> = {
  removedShare: {
    unit: 'share of the known rows',
    describe:
      'machines (or clusters) that one run may remove: no longer listed, or excluded now for another reason than stock',
    shape: share,
  },
  addedShare: {
    unit: 'share of the known rows',
    describe:
      'new rows in one run, which may be more than the known ones; the first run of a source has no limit',
    shape: factor,
  },
  repricedShare: {
    unit: 'share of the known rows',
    describe: 'rows with another price in one run',
    shape: share,
  },
  priceRatio: {
    unit: 'factor, from 1',
    describe:
      'largest factor of a change of a published price, up or down; few larger changes are quarantined',
    shape: z.number().min(1),
  },
  reshapedShare: {
    unit: 'share of the known rows',
    describe: 'machines with other vCPUs or memory in one run; a large share indicates a wrong unit',
    shape: share,
  },
  duplicateShare: {
    unit: 'share of the rows read',
    describe: 'repeated rows; few of them are quarantined',
    shape: share,
  },
  incompleteShare: {
    unit: 'share of what the upstream announced',
    describe: 'rows that may be missing',
    shape: share,
  },
  rejectedShare: {
    unit: 'share of the rows read',
    describe: 'rows that may be unusable, that is quarantined',
    shape: share,
  },
  smallCount: {
    unit: 'count',
    describe: 'rows that may always go, come, change or be rejected, whatever their share is',
    shape: z.int().min(0),
  },
  maxHourlyPrice: {
    unit: 'price per hour, in `CATALOGUE_CURRENCY`',
    describe: 'a row with a higher price is rejected',
    shape: z.number().positive(),
  },
};

type LimitShapes = { readonly [K in keyof GuardLimits]: z.ZodOptional<z.ZodNumber> };

export const limitsShape = z.strictObject(
  Object.fromEntries(
    Object.entries(LIMITS).map(([name, { unit, describe, shape }]) => [
      name,
      shape
        .optional()
        .describe(`${describe} (${unit}); ${DEFAULT_GUARD_LIMITS[name as keyof GuardLimits]} by default`),
    ]),
  ) as LimitShapes,
);
