/** Cursors of pages of plans: the place behind a plan in the order of prices, for one question. Pure. */
import { hash } from 'node:crypto';

export interface Position {
  readonly price: number;
  readonly id: number;
}

const HASH_LENGTH = 8;
const POSITION_LENGTH = 8 + 4;

const hashOf = (question: string) => hash('sha256', question, 'base64url').slice(0, HASH_LENGTH);

export function writeCursor({ price, id }: Position, question: string): string {
  const position = Buffer.alloc(POSITION_LENGTH);
  position.writeDoubleBE(price, 0);
  position.writeUInt32BE(id, 8);
  return hashOf(question) + position.toString('base64url');
}

/** Returns undefined for a text that is no cursor of this question. */
export function readCursor(text: string, question: string): Position | undefined {
  const position = Buffer.from(text.slice(HASH_LENGTH), 'base64url');
  const isWhole =
    position.length === POSITION_LENGTH && text === hashOf(question) + position.toString('base64url');
  if (!isWhole) return undefined;
  const found = { price: position.readDoubleBE(0), id: position.readUInt32BE(8) };
  return Number.isFinite(found.price) ? found : undefined;
}
