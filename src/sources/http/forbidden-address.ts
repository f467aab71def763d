import { lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** Link-local addresses and metadata services, which give the machine's credentials to any program on it. */
const FORBIDDEN = new BlockList();
FORBIDDEN.addSubnet('169.254.0.0', 16, 'ipv4');
FORBIDDEN.addSubnet('fe80::', 10, 'ipv6');
// AWS, Azure, Alibaba Cloud and Oracle (its older address).
FORBIDDEN.addAddress('fd00:ec2::254', 'ipv6');
FORBIDDEN.addAddress('168.63.129.16', 'ipv4');
FORBIDDEN.addAddress('100.100.100.200', 'ipv4');
FORBIDDEN.addAddress('192.0.0.192', 'ipv4');

const METADATA_NAMES =
  /^(metadata|metadata\.google\.internal|metadata\.goog|instance-data(\.ec2\.internal)?)\.?$/i;

/** Returns whether Fleetbook refuses to connect to a host: a name, or an address with or without brackets and zone. */
export function isForbidden(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  const version = isIP(bare);
  if (version === 0) return METADATA_NAMES.test(bare);
  if (version === 4) return FORBIDDEN.check(bare, 'ipv4');
  return FORBIDDEN.check(bare, 'ipv6') || isForbidden4In6(bare);
}

/** Checks IPv4 within IPv6: mapped (`::ffff:a9fe:a9fe`), compatible and NAT64. */
function isForbidden4In6(address: string): boolean {
  const { hostname } = new URL(`http://[${address}]`);
  const found = /^\[(?:::ffff:|::|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname);
  if (found === null) return false;
  const [high = 0, low = 0] = [found[1], found[2]].map((part) => Number.parseInt(part ?? '0', 16));
  return FORBIDDEN.check([high >> 8, high & 255, low >> 8, low & 255].join('.'), 'ipv4');
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
