/** Why the disk copy did not take or give something. */
export type CopyFailure = 'damaged' | 'full' | 'locked' | 'failed';

/** Part of the copy is not what was written: one row, or the file as a whole. */
export class DamagedCopy extends Error {
  readonly what: 'row';
  constructor(what: 'row') {
    super(`the disk copy has a damaged ${what}`);
    this.what = what;
  }
}

/** SQLite's primary result codes: https://www.sqlite.org/rescode.html */
const REASONS: Readonly<Record<number, CopyFailure>> = {
  5: 'locked',
  6: 'locked',
  11: 'damaged',
  13: 'full',
  24: 'damaged',
  26: 'damaged',
};

export function reasonOf(error: unknown): CopyFailure {
  if (error instanceof DamagedCopy) return 'damaged';
  const { errcode, code, message } = error as { errcode?: number; code?: string; message?: string };
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'full';
  // A table that has another shape is a foreign file.
  if (errcode === 1 && /no such (table|column)|has no column/.test(message ?? '')) return 'damaged';
  return (errcode === undefined ? undefined : REASONS[errcode & 0xff]) ?? 'failed';
}
