/** The searched catalogue, generated on demand and the same every time. */

import type { RegionUpdate } from '../../src/market/catalogue-index.ts';
import { ColumnsBuilder, type MachineWithFacts, readColumns } from '../../src/snapshot/document/columns.ts';

const PROVIDERS = 8;
export const REGIONS = 200;
const CPUS = [1, 2, 4, 8, 16, 32];
const RAM_PER_CPU = [1, 2, 4, 8];
const FAMILIES = ['general', 'compute', 'memory', 'storage', 'burst', 'dense', 'edge'];
const ARCHITECTURES = ['x86_64', 'x86_64', 'arm64'];

export const providerOf = (region: number): number => (region % PROVIDERS) + 1;

/** The machines of one region, cheapest first. @param factor of its prices */
export function machinesOf(region: number, perRegion: number, factor = 1): MachineWithFacts[] {
  return Array.from({ length: perRegion }, (_, type): MachineWithFacts => {
    const cpu = CPUS[type % CPUS.length] ?? 1;
    const ram = Math.min(128, cpu * (RAM_PER_CPU[Math.floor(type / 6) % 4] ?? 1));
    const hourly = cpu * 0.0113 + ram * 0.0017 + (type % 997) * 0.00031;
    return {
      id: (region - 1) * perRegion + type + 1,
      name: `${FAMILIES[type % FAMILIES.length]}-${providerOf(region)}-${cpu}x${ram}.${type}`,
      cpu,
      ram,
      ramUnit: 'Binary',
      price: Number(((hourly * factor * (1 + (region % 25) / 50)) / 60).toFixed(18)),
      facts: {
        architecture: ARCHITECTURES[type % ARCHITECTURES.length] ?? null,
        generation: String(type % 5),
        cpuKind: type % 4 === 0 ? 'shared' : 'dedicated',
        localDisk: type % 3 === 0 ? 80 : 0,
        network: null,
        includedTraffic: null,
        includedIpv4: null,
        orderableUntil: null,
        retiresAt: null,
      },
    };
  }).sort((a, b) => a.price - b.price || a.id - b.id);
}

/** In the reader's format. */
export function updateOf(region: number, machines: readonly MachineWithFacts[], version = 1): RegionUpdate {
  const provider = { id: providerOf(region), name: `Provider ${providerOf(region)}` };
  const place = { id: region, name: `Region ${region}`, code: `zone-${region}` };
  const builder = new ColumnsBuilder({ ...place, provider, version });
  for (const machine of machines) builder.add(machine);
  const columns = readColumns(builder.content({ sources: [] }).body);
  if (!columns) throw new Error('unreachable: what was built can be read');
  return {
    region: place,
    provider,
    version,
    hash: `${region} ${version}`,
    sources: [],
    currency: 'USD',
    columns,
  };
}
