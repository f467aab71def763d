import { createCipheriv, createDecipheriv } from 'node:crypto';

/** A place in the feed of one database. */
export interface Cursor {
  readonly feed: Feed;
  readonly position: number;
}

const LINEAGE_BYTES = 16;
const POSITION_BYTES = 6;
const OPEN_BYTES = LINEAGE_BYTES + POSITION_BYTES - 16;

/** Matches the text of a cursor: 22 bytes in base64url without padding. */
export const CURSOR_TEXT = /^[A-Za-z0-9_-]{29}[AQgw]$/;

export function encodeCursor({ feed, position }: Cursor): string {
  return feed.encode(position);
}

/** A cursor is 22 bytes: lineage and position. The last 16 are one AES block, so only the key makes or reads cursors. */
export class Feed {
  readonly lineage: string;
  readonly #lineage: Buffer;
  readonly #key: string;
  readonly #cipher: ReturnType<typeof createCipheriv>;
  readonly #decipher: ReturnType<typeof createDecipheriv>;

  constructor(lineage: string, key: string) {
    this.lineage = lineage;
    this.#lineage = bytesOf(lineage);
    this.#key = key;
    // ECB is safe here: a message is one block, and each block holds another position.
    this.#cipher = createCipheriv('aes-128-ecb', bytesOf(key), null).setAutoPadding(false);
    this.#decipher = createDecipheriv('aes-128-ecb', bytesOf(key), null).setAutoPadding(false);
  }

  is(lineage: string, key: string): boolean {
    return this.lineage === lineage && this.#key === key;
  }

  encode(position: number): string {
    const bytes = Buffer.alloc(LINEAGE_BYTES + POSITION_BYTES);
    this.#lineage.copy(bytes);
    bytes.writeUIntBE(position, LINEAGE_BYTES, POSITION_BYTES);
    this.#cipher.update(bytes.subarray(OPEN_BYTES)).copy(bytes, OPEN_BYTES);
    return bytes.toString('base64url');
  }

  /** Returns the cursor of a text; undefined for a text of another feed. */
  decode(text: string): Cursor | undefined {
    const bytes = Buffer.from(text, 'base64url');
    this.#decipher.update(bytes.subarray(OPEN_BYTES)).copy(bytes, OPEN_BYTES);
    if (!bytes.subarray(0, LINEAGE_BYTES).equals(this.#lineage)) return undefined;
    return { feed: this, position: bytes.readUIntBE(LINEAGE_BYTES, POSITION_BYTES) };
  }
}

const bytesOf = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex');
