import type { Document } from '../document/document.ts';
import { encodeLoaded } from '../document/format.ts';

/** When something was read: the subscription's epoch then, and the time in milliseconds. */
export interface ReadAt {
  readonly epoch: number;
  readonly at: number;
}

interface Pending extends ReadAt {
  readonly document: Document;
  /** 0 where the content is kept already. */
  readonly bytes: number;
}

/** A document on its way to the disk copy; without a value it is only said to be known still. */
export interface TakenDocument extends ReadAt {
  readonly id: string;
  readonly version: number;
  readonly value: Uint8Array | undefined;
}

interface Kept extends ReadAt {
  readonly version: number;
}

/** Ids whose kept version is remembered. The copy is asked about others, and has nothing new to write then. */
const REMEMBERED = 20_000;

/** Documents that wait to be written, the newest of each id, and which version was handed over before. */
export class PendingDocuments {
  readonly #most: number;
  readonly #pending = new Map<string, Pending>();
  #bytes = 0;
  /** Id → what the copy has, and when that was last said to be known; the oldest first. */
  readonly #kept = new Map<string, Kept>();

  /** @param most bytes that may wait */
  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Bytes of the documents that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @param everyMs for so long it need not be said again that a document is known. False when too much waits already. */
  add(id: string, document: Document, { epoch, at }: ReadAt, everyMs: number): boolean {
    const isKept = this.isKept(id, document.version);
    const last = this.#kept.get(id);
    if (isKept && last?.epoch === epoch && at - last.at < everyMs) return true;
    const bytes = isKept ? 0 : document.size;
    const all = this.#bytes - (this.#pending.get(id)?.bytes ?? 0) + bytes;
    if (bytes > 0 && all > this.#most) return false;
    this.#bytes = all;
    this.#pending.set(id, { document, bytes, epoch, at });
    return true;
  }

  /** Whether this version was handed over. */
  isKept(id: string, version: number): boolean {
    return this.#kept.get(id)?.version === version;
  }

  /** This version is in the copy. */
  setKept(id: string, version: number, { epoch, at }: ReadAt): void {
    this.#kept.delete(id);
    this.#kept.set(id, { version, epoch, at });
    if (this.#kept.size <= REMEMBERED) return;
    for (const oldest of this.#kept.keys()) {
      this.#kept.delete(oldest);
      return;
    }
  }

  /** Nothing of this id, or nothing at all, is in the copy. */
  forgetKept(id?: string): void {
    if (id === undefined) this.#kept.clear();
    else this.#kept.delete(id);
  }

  /** What is older than this version is not written any more. */
  dropOlder(id: string, version: number): void {
    const pending = this.#pending.get(id);
    if (pending && pending.document.version < version) this.#remove(id, pending);
  }

  /** Takes out documents of about so many bytes. */
  take(most: number): TakenDocument[] {
    const taken: TakenDocument[] = [];
    let bytes = 0;
    for (const [id, pending] of this.#pending) {
      if (bytes >= most) break;
      const { document, epoch, at } = pending;
      const value = pending.bytes > 0 ? encodeLoaded(id, document) : undefined;
      bytes += value?.length ?? 0;
      this.#remove(id, pending);
      this.setKept(id, document.version, pending);
      taken.push({ id, version: document.version, epoch, at, value });
    }
    return taken;
  }

  clear(): void {
    this.#pending.clear();
    this.#bytes = 0;
    this.forgetKept();
  }

  #remove(id: string, { bytes }: Pending): void {
    this.#pending.delete(id);
    this.#bytes -= bytes;
  }
}
