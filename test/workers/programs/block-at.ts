/**
 * Loaded into a worker by `node --import`. When the process requests the path that BLOCK_AT names, its event loop blocks for
 * ever. The program has no code for it.
 */
import { Socket } from 'node:net';

const path = process.env.BLOCK_AT ?? '';
const write = Socket.prototype.write as (this: Socket, ...given: unknown[]) => boolean;
Socket.prototype.write = function (this: Socket, ...given: unknown[]): boolean {
  const [chunk] = given;
  const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk as Uint8Array).toString('latin1');
  for (; text.startsWith(`GET ${path} `); );
  return write.apply(this, given);
} as typeof Socket.prototype.write;
