/** Bytes of memory for each note. A note takes 13. */
const BYTES_PER_NOTE = 4096;
const NOTES_AT_LEAST = 64;
/**
 * The share of notes that are kept when a newer one comes. If only the newest were, documents that are requested in turn would replace
 * each other's notes before their second reads, and memory would keep documents that no client requests.
 */
const KEPT = 1 / 4;

/**
 * The newest versions of documents that memory lacks: read once while it was full, or evicted. A hash of the id determines a pair of
 * places: the first has the newest note of such documents, the second an older one. Notes make no garbage.
 */
export class Notes {
  readonly #mask: number;
  readonly #hashes: Int32Array;
  /** 0 where nothing is noted. */
  readonly #versions: Float64Array;
  /** 1 for a document that was read once since memory lacks it. */
  readonly #isRead: Uint8Array;
  /** What `#select` found, until the next one. As a returned pair it would be garbage of each read. */
  #newest = 0;
  #hash = 0;

  /** @param memoryLimit bytes of the documents */
  constructor(memoryLimit: number) {
    const count = Math.max(NOTES_AT_LEAST, 2 ** Math.ceil(Math.log2(memoryLimit / BYTES_PER_NOTE)));
    this.#mask = count - 2;
    this.#hashes = new Int32Array(count);
    this.#versions = new Float64Array(count);
    this.#isRead = new Uint8Array(count);
  }

  /** Returns 0 for a document without a note. */
  version(id: string): number {
    this.#select(id);
    return this.#versions[this.#find()] ?? 0;
  }

  /** Notes a version that was served or announced, unless a newer one is noted. Returns the place. */
  note(id: string, version: number): number {
    this.#select(id);
    const found = this.#find();
    const place = found === -1 ? this.#replace() : found;
    this.#versions[place] = Math.max(version, this.#versions[place] ?? 0);
    return place;
  }

  noteEvicted(id: string, version: number): void {
    this.#isRead[this.note(id, version)] = 0;
  }

  /** Notes a read. Returns true if it is the second one. */
  noteRead(id: string, version: number): boolean {
    const place = this.note(id, version);
    const isSecond = this.#isRead[place] === 1;
    this.#isRead[place] = isSecond ? 0 : 1;
    return isSecond;
  }

  /** Sets the first place of the document's pair, and its other hash. Documents of one pair differ in it. */
  #select(id: string): void {
    let place = 0;
    let hash = 0;
    for (let i = 0; i < id.length; i++) {
      const code = id.charCodeAt(i);
      place = Math.imul(place ^ code, 0x01000193);
      hash = Math.imul(hash ^ code, 0x5bd1e995);
    }
    this.#newest = (place ^ (place >>> 15)) & this.#mask;
    this.#hash = hash;
  }

  /** Returns the place of the selected document; -1 if it has no note. */
  #find(): number {
    if (this.#hashes[this.#newest] === this.#hash) return this.#newest;
    return this.#hashes[this.#newest + 1] === this.#hash ? this.#newest + 1 : -1;
  }

  /** Makes room for a note of the selected document. Returns its place. */
  #replace(): number {
    const newest = this.#newest;
    const older = newest + 1;
    if (Math.random() < KEPT) {
      this.#hashes[older] = this.#hashes[newest] ?? 0;
      this.#versions[older] = this.#versions[newest] ?? 0;
      this.#isRead[older] = this.#isRead[newest] ?? 0;
    }
    this.#hashes[newest] = this.#hash;
    this.#versions[newest] = 0;
    this.#isRead[newest] = 0;
    return newest;
  }

  clear(): void {
    this.#hashes.fill(0);
    this.#versions.fill(0);
    this.#isRead.fill(0);
  }
}
