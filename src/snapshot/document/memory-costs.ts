/**
 * Bytes that entries cost beside the bytes that they hold. Measured: `npm run bench:memory` prints what each costs beside
 * its constant, and fails when a constant is too small or half as large again.
 */

/** A document: its objects, its id and its place in the LRU. Also the whole cost of knowing that there is none. */
export const BYTES_PER_DOCUMENT = 1100;
/** A key of an index that was parsed. */
export const BYTES_PER_KEY = 70;
/** An accepted token with its document, which memory may have evicted. */
export const BYTES_PER_TOKEN = 1600;
/** A cached response: header lists in one coding, target, places in maps. */
export const BYTES_PER_RESPONSE = 1700;
/** An id with little behind it, in an LRU. */
export const BYTES_PER_ENTRY = 350;
