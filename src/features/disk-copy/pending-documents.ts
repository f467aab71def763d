import type { Document } from '../../snapshot/document/document.ts';
import type { DocumentReadAt, ReadAt } from '../../snapshot/read/durable-copy.ts';

interface Pending extends DocumentReadAt {
  readonly document: Document;
  readonly bytes: number;
}

interface Kept extends ReadAt {
  readonly version: number;
}

/** Ids whose kept version is remembered. */
const REMEMBERED = 100_000;

/** Documents that wait to be written, the newest of each id, and which versions are written. */
export class PendingDocuments {
  readonly #most: number;
  readonly #pending = new Map<string, Pending>();
  #bytes = 0;
  /** Id → the version on disk, and when it was read. */
  readonly #kept = new Map<string, Kept>();

  /** @param most bytes that may wait */
  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#pending.size;
  }

  get(id: string): Pending | undefined {
    return this.#pending.get(id);
  }

  /** The document that waits for longest. */
  first(): readonly [id: string, Pending] | undefined {
    return this.#pending.entries().next().value;
  }

  /** @param everyMs for so long a written version need not be written again. False when too much waits already. */
  add(id: string, document: Document, read: DocumentReadAt, everyMs: number): boolean {
    const kept = this.#kept.get(id);
    const isRecent = kept?.epoch === read.epoch && read.at - kept.at < everyMs;
    if (isRecent && kept.version === document.version) return true;
    this.remove(id);
    const bytes = document.size;
    if (this.#bytes + bytes > this.#most) return false;
    this.#bytes += bytes;
    this.#pending.set(id, { document, bytes, ...read });
    return true;
  }

  /** Nothing older than this version is on disk. */
  setKept(id: string, version: number, { epoch, at }: ReadAt): void {
    if (this.#kept.size >= REMEMBERED) this.#kept.clear();
    this.#kept.set(id, { version, epoch, at });
  }

  isKept(id: string, version: number): boolean {
    return this.#kept.get(id)?.version === version;
  }

  forgetKept(): void {
    this.#kept.clear();
  }

  /** Removes a version that is older than this one. */
  dropOlder(id: string, version: number): void {
    if ((this.#pending.get(id)?.document.version ?? version) < version) this.remove(id);
  }

  /** Removes the document, unless another one took its place. */
  remove(id: string, pending = this.#pending.get(id)): void {
    if (!pending || this.#pending.get(id) !== pending) return;
    this.#pending.delete(id);
    this.#bytes -= pending.bytes;
  }

  clear(): void {
    this.#pending.clear();
    this.#bytes = 0;
    this.forgetKept();
  }
}
