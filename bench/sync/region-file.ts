/** `npm run bench -- sync region-file`: one file of AWS through the real adapter, as in a sync. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import { openSourceHttp } from '../../src/sources/http/http.ts';
import { adapter } from '../../src/sources/providers/aws.ts';
import type { Bar } from '../support/bar.ts';
import { count, flag, readOptions, report } from '../support/harness.ts';

const LIMIT_MB = 300;
const FILE = '/offers/v1.0/aws/AmazonEC2/20260220180000/us-east-1/index.json';
const TYPES = 900;
const VARIANTS = 120;
const VOLUMES = ['gp3', 'gp2', 'io1', 'io2', 'st1', 'sc1', 'standard'];
/** The ways to pay for a reservation: three for each length and class. */
const LEASES = ['1yr', '3yr'].flatMap((length) =>
  ['standard', 'convertible'].flatMap((offeringClass) =>
    ['No Upfront', 'Partial Upfront', 'All Upfront'].map((option) => ({
      LeaseContractLength: length,
      OfferingClass: offeringClass,
      PurchaseOption: option,
    })),
  ),
);

const { bytes, json, ...options } = readOptions(
  `Reads an AWS region file through the adapter, as a sync does. Another process generates the file and sends it over loopback. It
has the shape and the proportions of a large region's: about a hundred variants of each type, one of them ordinary, and more text
about reservations than about everything else.`,
  {
    bytes: count('size of the file', 500_000_000),
    json: flag('prints JSON'),
    serve: flag('only generates the file and sends it'),
  },
);

if (options.serve) await serve();
else await measure();

async function measure(): Promise<void> {
  const server = fork(new URL(import.meta.url), ['--serve', '--bytes', String(bytes)]);
  try {
    const [url] = (await once(server, 'message')) as [string];
    const http = openSourceHttp({
      baseUrl: url,
      credentials: 'none',
      deadlineMs: 60_000,
      maxBytes: 64 * 1024 * 1024,
    });
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const begun = performance.now();
    const seen = {
      offer: 0,
      rejected: 0,
      unread: 0,
      region: 0,
      'region-price': 0,
      'database-plan': 0,
      'unread-prices': 0,
      total: 0,
      validator: 0,
      unmodified: 0,
      'as-of': 0,
    };
    let reserved = 0;
    for await (const item of adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z') })) {
      seen[item.kind] += 1;
      if (item.kind === 'offer') reserved += Object.keys(item.offer.terms ?? {}).length;
    }
    const seconds = (performance.now() - begun) / 1000;
    const expected = (what: string, number: number, limit: number): Bar => ({
      ...{ what, found: number, limit },
      ...{ unit: '', bound: 'exactly' },
    });
    report(
      [
        { what: `read ${Math.round(bytes / 1e6)} MB`, found: seconds, unit: 's' },
        {
          what: 'peak memory of the process',
          found: Math.round(process.resourceUsage().maxRSS / 1024),
          unit: 'MB',
          limit: LIMIT_MB,
        },
        { what: 'event-loop delay p99.9', found: delay.percentile(99.9) / 1e6, unit: 'ms' },
        expected('offers', seen.offer, TYPES),
        expected('prices of reservations', reserved, 2 * TYPES),
        expected('prices of the region', seen['region-price'], VOLUMES.length),
      ],
      { json },
    );
  } finally {
    server.kill();
  }
}

async function serve(): Promise<void> {
  const server = createServer((request, response) => {
    if (request.url === FILE) {
      Readable.from(regionFile()).pipe(response);
      return;
    }
    const code = request.url?.includes('AmazonEC2') ? 'us-east-1' : 'elsewhere';
    const regions = { [code]: { regionCode: code, currentVersionUrl: FILE } };
    response.end(JSON.stringify({ formatVersion: 'v1.0', regions }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.once('disconnect', () => process.exit());
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

/** Reservations fill it up to its size. */
function* regionFile(): Generator<string> {
  yield '{\n  "formatVersion" : "v1.0",\n  "offerCode" : "AmazonEC2",\n  "products" : {';
  yield* entries(TYPES * VARIANTS, product);
  for (const [index, name] of VOLUMES.entries())
    yield `,\n"${volumeSku(index)}" : ${JSON.stringify(volume(index, name), null, 2)}`;
  yield '\n  },\n  "terms" : {\n    "OnDemand" : {';
  yield* entries(TYPES * VARIANTS, onDemand);
  for (const index of VOLUMES.keys()) {
    const of = volumeSku(index);
    yield `,\n"${of}" : ${JSON.stringify({ [of]: term(of, 'JRTCKXETXF', 'GB-Mo', '0.0800000000', {}) }, null, 2)}`;
  }
  yield '\n    },\n    "Reserved" : {';
  yield* entries(Number.POSITIVE_INFINITY, reserved, reservedAt);
  yield '\n    }\n  },\n  "attributesList" : { }\n}\n';
}

let sent = 0;
function* entries(
  most: number,
  entry: (index: number) => object,
  indexAt = (number: number) => number,
): Generator<string> {
  let text = '';
  for (let number = 0; number < most && sent < bytes; number++) {
    const index = indexAt(number);
    text += `${number === 0 ? '' : ','}\n"${sku(index)}" : ${JSON.stringify(entry(index), null, 2)}`;
    if (text.length < 65_536) continue;
    sent += text.length;
    yield text;
    text = '';
  }
  sent += text.length;
  yield text;
}

function sku(index: number): string {
  return index.toString(36).toUpperCase().padStart(16, '0');
}

function product(index: number): object {
  const ordinary = index % VARIANTS === 0;
  const type = Math.floor(index / VARIANTS);
  return {
    sku: sku(index),
    productFamily: 'Compute Instance',
    attributes: {
      servicecode: 'AmazonEC2',
      location: 'US East (N. Virginia)',
      locationType: 'AWS Region',
      instanceType: `m${type}.large`,
      currentGeneration: 'Yes',
      instanceFamily: 'General purpose',
      vcpu: '2',
      physicalProcessor: 'Intel Xeon Platinum 8175',
      clockSpeed: '3.1 GHz',
      memory: '8 GiB',
      storage: 'EBS only',
      networkPerformance: 'Up to 10 Gigabit',
      processorArchitecture: '64-bit',
      tenancy: index % 3 === 0 ? 'Shared' : 'Dedicated',
      operatingSystem: ordinary ? 'Linux' : 'Windows',
      licenseModel: 'No License required',
      usagetype: `BoxUsage:m${type}.large`,
      operation: ordinary ? 'RunInstances' : 'RunInstances:0002',
      availabilityzone: 'NA',
      capacitystatus: 'Used',
      classicnetworkingsupport: 'false',
      dedicatedEbsThroughput: 'Up to 2120 Mbps',
      ecu: '10',
      enhancedNetworkingSupported: 'Yes',
      gpuMemory: 'NA',
      intelAvxAvailable: 'Yes',
      intelAvx2Available: 'Yes',
      intelTurboAvailable: 'Yes',
      marketoption: 'OnDemand',
      normalizationSizeFactor: '4',
      preInstalledSw: 'NA',
      processorFeatures: 'Intel AVX; Intel AVX2; Intel AVX512; Intel Turbo',
      regionCode: 'us-east-1',
      servicename: 'Amazon Elastic Compute Cloud',
      vpcnetworkingsupport: 'true',
    },
  };
}

function volumeSku(index: number): string {
  return `VOLUME${sku(index).slice(6)}`;
}

function volume(index: number, name: string): object {
  const attributes = {
    servicecode: 'AmazonEC2',
    location: 'US East (N. Virginia)',
    locationType: 'AWS Region',
    usagetype: `EBS:VolumeUsage.${name}`,
    regionCode: 'us-east-1',
    volumeApiName: name,
  };
  return { sku: volumeSku(index), productFamily: 'Storage', attributes };
}

function onDemand(index: number): object {
  const of = sku(index);
  return { [`${of}.JRTCKXETXF`]: term(of, 'JRTCKXETXF', 'Hrs', '0.0960000000', {}) };
}

/** Of the ordinary variants first, so that each has one in a file of any size. */
function reservedAt(index: number): number {
  if (index < TYPES) return index * VARIANTS;
  const other = index - TYPES;
  return other + Math.floor(other / (VARIANTS - 1)) + 1;
}

function reserved(index: number): object {
  const of = sku(index);
  return Object.fromEntries(
    LEASES.map((lease, number) => {
      const code = `LEASE${number}`.padEnd(10, '0');
      return [`${of}.${code}`, term(of, code, 'Quantity', '1161', lease)];
    }),
  );
}

function term(of: string, code: string, unit: string, price: string, termAttributes: object): object {
  const rate = `${of}.${code}.6YS6EN2CT7`;
  const dimension = {
    rateCode: rate,
    description: `$${price} per On Demand Linux Instance Hour`,
    beginRange: '0',
    endRange: 'Inf',
    unit,
    pricePerUnit: { USD: price },
    appliesTo: [],
  };
  return {
    offerTermCode: code,
    sku: of,
    effectiveDate: '2026-02-01T00:00:00Z',
    priceDimensions: { [rate]: dimension },
    termAttributes,
  };
}
