/** Tables and statements of the disk copy. Every row has a checksum over what it says, the lineage included. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';

/**
 * `documents`: `floor` is the newest version that is known of, `version` the one whose value is here, in the form of the
 * cache. It was true when it was read, and is as long as its epoch of its run is confirmed.
 */
export const SCHEMA = `
  create table if not exists lineage (
    only integer primary key check (only = 1), id text not null, at integer not null, crc integer not null);
  create table if not exists documents (
    id text primary key, version integer not null, floor integer not null, run text not null, epoch integer not null,
    read_at integer not null, crc integer not null, value blob);
  create index if not exists documents_read_at on documents (read_at);
  create table if not exists confirmations (
    run text, epoch integer, at integer not null, crc integer not null, primary key (run, epoch)) without rowid;
  create table if not exists machines (id integer primary key, region integer not null, crc integer not null);
  create table if not exists stamps (id text primary key, stamp text not null, crc integer not null) without rowid;`;

/** Parts are told apart: none of them has a line break. */
export function crcOf(...parts: readonly (string | number)[]): number {
  return crc32(parts.join('\n'));
}

export interface DocumentRow {
  readonly version: number;
  readonly floor: number;
  readonly run: string;
  readonly epoch: number;
  readonly readAt: number;
  readonly crc: number;
  readonly value: Uint8Array | null;
}

interface Touch {
  readonly id: string;
  readonly run: string;
  readonly epoch: number;
  readonly readAt: number;
  readonly crc: number;
}

/** When a document was last known to be true. */
const KNOWN_AT = `max(read_at, coalesce((select c.at from confirmations c where c.run = d.run and c.epoch = d.epoch), 0))`;

/** The statements, prepared when they are first used. */
export class Statements {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  document(id: string): DocumentRow | undefined {
    return this.#row<DocumentRow>(
      'select version, floor, run, epoch, read_at as readAt, crc, value from documents where id = ?',
      id,
    );
  }

  versions(id: string): { readonly newest: number; readonly held: number } | undefined {
    return this.#row(
      'select floor as newest, case when value is null then 0 else version end as held from documents where id = ?',
      id,
    );
  }

  set(row: Omit<DocumentRow, 'value'> & { readonly id: string; readonly value: Uint8Array }): void {
    this.#run(
      `insert into documents (id, version, floor, run, epoch, read_at, crc, value) values (?, ?, ?, ?, ?, ?, ?, ?)
       on conflict (id) do update set version = excluded.version, floor = excluded.floor, run = excluded.run,
         epoch = excluded.epoch, read_at = excluded.read_at, crc = excluded.crc, value = excluded.value`,
      ...[row.id, row.version, row.floor, row.run, row.epoch, row.readAt, row.crc, row.value],
    );
  }

  touch({ id, run, epoch, readAt, crc }: Touch): void {
    this.#run(
      'update documents set run = ?, epoch = ?, read_at = ?, crc = ? where id = ?',
      ...[run, epoch, readAt, crc, id],
    );
  }

  putOut(row: {
    readonly id: string;
    readonly floor: number;
    readonly readAt: number;
    readonly crc: number;
  }) {
    this.#run(
      'update documents set floor = ?, read_at = ?, crc = ?, value = null where id = ?',
      ...[row.floor, row.readAt, row.crc, row.id],
    );
  }

  remove(id: string): void {
    this.#run('delete from documents where id = ?', id);
  }

  /** Removes one list; false when there is none left. */
  evict(): boolean {
    const evicted = this.#row<{ id: string }>(
      `delete from documents where id = (
         select id from documents where value is not null and (id glob 'region:*' or id glob 'clusters:*')
         order by read_at limit 1) returning id`,
    );
    const region = evicted?.id.startsWith('region:') ? Number(evicted.id.slice('region:'.length)) : undefined;
    if (region !== undefined) this.#run('delete from machines where region = ?', region);
    return evicted !== undefined;
  }

  prune(before: { readonly floors: number; readonly documents: number; readonly tokens: number }): void {
    this.#run('delete from documents where value is null and read_at < ?', before.floors);
    this.#run(
      `delete from documents as d where value is not null
         and read_at < max(?1, ?2) and ${KNOWN_AT} < case when id glob 'token:*' then ?2 else ?1 end`,
      ...[before.documents, before.tokens],
    );
    this.#run('delete from confirmations where at < ?', Math.min(before.documents, before.tokens));
    this.#run(
      `delete from machines where not exists (select 1 from documents d where d.id = 'region:' || region)`,
    );
  }

  /** And when PostgreSQL named it, in milliseconds; 0 where it did not. */
  lineage(): { readonly id: string; readonly at: number } | undefined {
    const row = this.#row<{ id: string; at: number; crc: number }>('select id, at, crc from lineage');
    return row && row.crc === crcOf(row.id, row.at) ? row : undefined;
  }

  setLineage(id: string, at: number, crc: number): void {
    this.#run('insert or replace into lineage (only, id, at, crc) values (1, ?, ?, ?)', id, at, crc);
  }

  forget(): void {
    for (const table of ['lineage', 'documents', 'confirmations', 'machines', 'stamps'])
      this.#run(`delete from ${table}`);
  }

  confirm(run: string, epoch: number, at: number, crc: number): void {
    this.#run(
      `insert into confirmations (run, epoch, at, crc) values (?, ?, ?, ?)
       on conflict (run, epoch) do update set at = excluded.at, crc = excluded.crc where excluded.at > at`,
      ...[run, epoch, at, crc],
    );
  }

  /** Milliseconds; 0 where it is not known. */
  confirmedAt(lineage: string, run: string, epoch: number): number {
    const row = this.#row<{ at: number; crc: number }>(
      'select at, crc from confirmations where run = ? and epoch = ?',
      run,
      epoch,
    );
    return row && row.crc === crcOf(lineage, run, epoch, row.at) ? row.at : 0;
  }

  machine(id: number): { readonly region: number; readonly crc: number } | undefined {
    return this.#row('select region, crc from machines where id = ?', id);
  }

  setMachine(id: number, region: number, crc: number): void {
    this.#run(
      `insert into machines (id, region, crc) values (?, ?, ?)
       on conflict (id) do update set region = excluded.region, crc = excluded.crc where excluded.crc <> crc`,
      ...[id, region, crc],
    );
  }

  removeMachine(id: number): void {
    this.#run('delete from machines where id = ?', id);
  }

  stamps(): { readonly id: string; readonly stamp: string; readonly crc: number }[] {
    return this.#prepare('select id, stamp, crc from stamps').all() as never;
  }

  setStamp(id: string, stamp: string, crc: number): void {
    this.#run(
      `insert into stamps (id, stamp, crc) values (?, ?, ?)
       on conflict (id) do update set stamp = excluded.stamp, crc = excluded.crc`,
      ...[id, stamp, crc],
    );
  }

  /** Pages that hold something. */
  usedPages(): number {
    const [all, free] = [
      this.#row<{ page_count: number }>('pragma page_count'),
      this.#row<{ freelist_count: number }>('pragma freelist_count'),
    ];
    return (all?.page_count ?? 0) - (free?.freelist_count ?? 0);
  }

  /** Documents that have a value. */
  count(): number {
    return this.#row<{ n: number }>('select count(*) as n from documents where value is not null')?.n ?? 0;
  }

  #row<T>(text: string, ...values: SQLInputValue[]): T | undefined {
    return this.#prepare(text).get(...values) as T | undefined;
  }

  #run(text: string, ...values: SQLInputValue[]): void {
    this.#prepare(text).run(...values);
  }

  #prepare(text: string): StatementSync {
    let statement = this.#prepared.get(text);
    if (!statement) {
      statement = this.#database.prepare(text);
      this.#prepared.set(text, statement);
    }
    return statement;
  }
}
