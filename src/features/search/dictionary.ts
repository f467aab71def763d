/** What many machines have in common, each under a number. Numbers are only ever added: rows of before stay right. */
import type { MachineKind } from '../../snapshot/document/columns.ts';

/** Bytes of a gigabyte in the unit of a machine's memory. */
export const GIGABYTE: Readonly<Record<MachineKind['ramUnit'], number>> = {
  Binary: 2 ** 30,
  Decimal: 10 ** 9,
};

/** Machines of one provider that every order without their price takes for the same. */
export interface Group {
  readonly providerId: number;
  readonly cpu: number;
  /** As sold: a count of GB or GiB. */
  readonly ram: number;
  readonly ramBytes: number;
  readonly architecture: string | null;
  readonly cpuKind: MachineKind['cpuKind'];
  readonly isSoldOut: boolean;
}

/** What a provider sells under one name: the same in each region, but for the price. */
export interface MachineType {
  readonly name: string;
  readonly kind: MachineKind;
  readonly group: number;
}

export class Dictionary {
  readonly groups: Group[] = [];
  readonly types: MachineType[] = [];
  readonly #groups = new Map<string, number>();
  /** Kinds of all documents, so that equal ones are one object. */
  readonly #kinds = new Map<string, MachineKind>();
  /** By provider and name: the types of that name. Seldom more than one. */
  readonly #types = new Map<number, Map<string, number[]>>();

  /** The same kind as an object that all documents share. */
  kind(kind: MachineKind): MachineKind {
    const key = JSON.stringify(kind);
    const known = this.#kinds.get(key);
    if (known) return known;
    this.#kinds.set(key, kind);
    return kind;
  }

  /** @param kind as `kind` has given it @returns the type's number */
  type(providerId: number, name: string, kind: MachineKind): number {
    let names = this.#types.get(providerId);
    if (!names) {
      names = new Map();
      this.#types.set(providerId, names);
    }
    const known = names.get(name);
    const found = known?.find((type) => this.types[type]?.kind === kind);
    if (found !== undefined) return found;
    const type = this.types.push({ name, kind, group: this.#group(providerId, kind) }) - 1;
    if (known) known.push(type);
    else names.set(name, [type]);
    return type;
  }

  #group(providerId: number, kind: MachineKind): number {
    const { cpu, ram, ramUnit, architecture, cpuKind, isSoldOut = false } = kind;
    const ramBytes = ram * GIGABYTE[ramUnit];
    const group: Group = { providerId, cpu, ram, ramBytes, architecture, cpuKind, isSoldOut };
    const key = JSON.stringify(Object.values(group));
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    const added = this.groups.push(group) - 1;
    this.#groups.set(key, added);
    return added;
  }
}
