/** The kinds and names of machines by number. Numbers are only added, so rows of an earlier index stay valid. */
import type { MachineKind } from '../snapshot/document/columns.ts';

export const GIGABYTE: Readonly<Record<MachineKind['ramUnit'], number>> = {
  Binary: 2 ** 30,
  Decimal: 10 ** 9,
};

/** Machines of one provider that differ only in name, region and price. */
export interface ProviderKind {
  readonly providerId: number;
  readonly facts: MachineKind;
  readonly ramBytes: number;
}

/** A machine type is a name of one kind. A provider sells it in several regions, at several prices. */
export class Dictionary {
  readonly kinds: ProviderKind[] = [];
  readonly names: string[] = [];
  readonly kindOf: number[] = [];
  readonly #kinds = new Map<string, number>();
  readonly #types: Map<string, number>[] = [];

  kind(providerId: number, facts: MachineKind): number {
    const key = JSON.stringify([providerId, facts]);
    const known = this.#kinds.get(key);
    if (known !== undefined) return known;
    const kind = this.kinds.push({ providerId, facts, ramBytes: facts.ram * GIGABYTE[facts.ramUnit] }) - 1;
    this.#types.push(new Map());
    this.#kinds.set(key, kind);
    return kind;
  }

  type(kind: number, name: string): number {
    const types = this.#types[kind];
    if (!types) throw new Error('unreachable: `kind` returned it');
    const known = types.get(name);
    if (known !== undefined) return known;
    const type = this.names.push(name) - 1;
    this.kindOf.push(kind);
    types.set(name, type);
    return type;
  }
}
