import { gigabytes } from '../../schema/facts.ts';

interface StatedAttributes {
  /** `Intel Xeon Platinum 8175`, `AMD EPYC 7R13 Processor`, `AWS Graviton2 Processor`. */
  readonly physicalProcessor?: string | undefined;
  /** `64-bit` or `32-bit or 64-bit`, for Arm processors too. */
  readonly processorArchitecture?: string | undefined;
  /** `EBS only`, `1 x 75 NVMe SSD`, `4 x 2000 HDD` or `900 GB NVMe SSD`. */
  readonly storage?: string | undefined;
  /** `25 Gigabit`, `12500 Megabit`, `4x 100 Gigabit`; `Up to 10 Gigabit` and `Moderate` are not guaranteed rates. */
  readonly networkPerformance?: string | undefined;
}

const DISKS = /^(?:(?<number>\d{1,3}) x )?(?<size>[\d,]{1,9}(?:\.\d+)?)(?: GB)?(?: NVMe)?(?: SSD| HDD)?$/;
const RATE = /^(?:(?<number>\d{1,2})x )?(?<rate>[\d,]{1,9}(?:\.\d+)?) (?<unit>Gigabit|Megabit)$/;

/** Mbit/s; real types have far less. */
const FASTEST = 1e9;

/** Source: https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html; 5 is the generation of `m5.large`. */
export function awsFacts(name: string, attributes: StatedAttributes) {
  return {
    architecture: architectureOf(attributes),
    generation: /^[a-z]+(\d+)(?:[a-z-][a-z0-9-]*)?\./.exec(name)?.[1],
    localDisk: diskOf(attributes.storage),
    network: rateOf(attributes.networkPerformance),
  };
}

/** Graviton processors are Arm's. Source: https://aws.amazon.com/ec2/graviton/. */
function architectureOf({ physicalProcessor = '', processorArchitecture = '' }: StatedAttributes) {
  if (/\bGraviton/.test(physicalProcessor)) return 'arm64';
  const isX86 = /\b(Intel|AMD)\b/.test(physicalProcessor) && processorArchitecture.includes('64-bit');
  return isX86 ? 'x86_64' : undefined;
}

function diskOf(storage = ''): number | undefined {
  if (storage === 'EBS only') return 0;
  const { number, size } = DISKS.exec(storage)?.groups ?? {};
  return size === undefined ? undefined : gigabytes(Number(number ?? 1) * numberIn(size), 'GB');
}

function rateOf(performance = ''): number | undefined {
  const { number, rate, unit } = RATE.exec(performance)?.groups ?? {};
  if (rate === undefined) return undefined;
  const megabits = Math.round(Number(number ?? 1) * numberIn(rate) * (unit === 'Gigabit' ? 1000 : 1));
  return megabits > 0 && megabits <= FASTEST ? megabits : undefined;
}

const numberIn = (text: string) => Number(text.replaceAll(',', ''));
