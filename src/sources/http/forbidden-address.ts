import { lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** Link-local addresses and metadata services, which give the machine's credentials to any program on it. */
const FORBIDDEN = new BlockList();
FORBIDDEN.addSubnet('169.254.0.0', 16, 'ipv4');
FORBIDDEN.addSubnet('fe80::', 10, 'ipv6');
// AWS, with the credentials of EKS pods.
FORBIDDEN.addAddress('fd00:ec2::254', 'ipv6');
FORBIDDEN.addAddress('fd00:ec2::23', 'ipv6');
// Google Cloud, Oracle, Scaleway.
FORBIDDEN.addAddress('fd20:ce::254', 'ipv6');
FORBIDDEN.addAddress('fd00:c1::a9fe:a9fe', 'ipv6');
FORBIDDEN.addAddress('fd00:42::42', 'ipv6');
// Azure, Alibaba Cloud and Oracle (its older address).
FORBIDDEN.addAddress('168.63.129.16', 'ipv4');
FORBIDDEN.addAddress('100.100.100.200', 'ipv4');
FORBIDDEN.addAddress('192.0.0.192', 'ipv4');

const METADATA_NAMES =
  /^(metadata|metadata\.google\.internal|metadata\.goog|instance-data(\.ec2\.internal)?)\.?$/i;

/** Returns whether Fleetbook refuses to connect to a host: a name, or an address with or without brackets and zone. */
export function isForbidden(host: string): boolean {
  const [bare = ''] = host.replace(/^\[|\]$/g, '').split('%', 1);
  const version = isIP(bare);
  if (version === 0) return METADATA_NAMES.test(bare);
  if (version === 4) return FORBIDDEN.check(bare, 'ipv4');
  return FORBIDDEN.check(bare, 'ipv6') || embedded(bare).some((address) => FORBIDDEN.check(address, 'ipv4'));
}

/** Returns the IPv4 addresses that a network may read from an IPv6 address. */
function embedded(address: string): string[] {
  const hex = digits(address);
  const prefixes: readonly (readonly [RegExp, ...number[]])[] = [
    // Compatible, mapped (`::ffff:a.b.c.d`), translated (`::ffff:0:a.b.c.d`) and NAT64.
    [/^(0{24}|0{20}ffff|0{16}ffff0{4}|0064ff9b0{16})/, 24],
    // NAT64 of a network (RFC 8215): RFC 6052 has a place for each length of the prefix, and leaves out the eighth byte.
    [/^0064ff9b0001/, 12, 14, 18, 24],
    // 6to4 and ISATAP.
    [/^2002/, 4],
    [/^.{16}0[02]005efe/, 24],
  ];
  return prefixes
    .flatMap(([prefix, ...places]) => (prefix.test(hex) ? places : []))
    .map((place) => {
      const isAround = place === 12 || place === 14;
      const text = isAround ? hex.slice(place, 16) + hex.slice(18, 10 + place) : hex.slice(place, place + 8);
      return [0, 2, 4, 6].map((at) => Number.parseInt(text.slice(at, at + 2), 16)).join('.');
    });
}

/** Returns the 32 hexadecimal digits of an IPv6 address. */
function digits(address: string): string {
  const { hostname } = new URL(`http://[${address}]`);
  const [before = [], after = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = new Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...zeros, ...after].map((group) => group.padStart(4, '0')).join('');
}

/**
 * Returns a function that resolves a name and checks the address that the connection uses: a second lookup could differ.
 * @param refuse makes the error for a name with a forbidden address
 */
export function checkedLookup(refuse: (hostname: string, address: string) => Error): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, options, (error, address, family) => {
      const found = typeof address === 'string' ? [address] : (address ?? []).map((each) => each.address);
      const bad = error ? undefined : found.find(isForbidden);
      if (bad === undefined) callback(error, address, family);
      else callback(refuse(hostname, bad), [], 0);
    });
  };
}
