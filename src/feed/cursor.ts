/** A place in one database's feed, as clients keep it: opaque text. */
export interface Cursor {
  /** A change of another lineage has nothing to do with this one, whatever its position. */
  readonly lineage: string;
  readonly position: number;
}

const LINEAGE_BYTES = 16;
const POSITION_BYTES = 6;
/** In base64url, without padding. */
const LENGTH = Math.ceil(((LINEAGE_BYTES + POSITION_BYTES) * 4) / 3);

export function encodeCursor({ lineage, position }: Cursor): string {
  const bytes = Buffer.alloc(LINEAGE_BYTES + POSITION_BYTES);
  bytes.write(lineage.replaceAll('-', ''), 'hex');
  bytes.writeUIntBE(position, LINEAGE_BYTES, POSITION_BYTES);
  return bytes.toString('base64url');
}

/** Undefined for what is no cursor of ours. */
export function decodeCursor(text: string): Cursor | undefined {
  if (text.length !== LENGTH || !/^[\w-]+$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  const hex = bytes.toString('hex', 0, LINEAGE_BYTES);
  const cursor = {
    lineage: hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
    position: bytes.readUIntBE(LINEAGE_BYTES, POSITION_BYTES),
  };
  return encodeCursor(cursor) === text ? cursor : undefined;
}
