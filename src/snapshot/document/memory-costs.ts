/**
 * Overhead of entries in bytes, in addition to their content. `npm run bench:memory` measures each constant, and fails if one
 * is too small or 50 % too large.
 */

/** A document: its objects, its id and its LRU entry. Also the whole cost of a known absence. */
export const BYTES_PER_DOCUMENT = 1100;
/** A key of a parsed index. */
export const BYTES_PER_KEY = 70;
/** An accepted token, also after memory has evicted its document. */
export const BYTES_PER_TOKEN = 1600;
/** A cached response: header lists in one coding, target, map entries. */
export const BYTES_PER_RESPONSE = 1700;
/** A small entry of an LRU. */
export const BYTES_PER_ENTRY = 350;
