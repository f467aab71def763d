/** A colon, and nothing that no IPv6 address holds; a zone may follow. */
const IPV6 = /^(?=.*:)[0-9a-f:.]{2,45}(?:%.*)?$/i;

/** 16-bit groups of an IPv6 address that a network has; the others its subscriber may choose at will. */
const NETWORK_GROUPS = 4;

/**
 * The address by which callers are told apart: of IPv6 the /64, since every customer has at least that many, and of
 * an IPv4 address that was mapped into IPv6 the IPv4 one. Any other text is given back as it is.
 */
export function addressKey(address: string): string {
  if (!IPV6.test(address)) return address;
  const [bare = ''] = address.toLowerCase().split('%');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(bare);
  if (mapped?.[1]) return mapped[1];
  const [before = '', after] = bare.split('::');
  const head = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  // An IPv4 address at the end stands for two groups.
  const count = head.length + tail.length + (bare.includes('.') ? 1 : 0);
  const groups = [...head, ...Array.from({ length: 8 - count }, () => '0'), ...tail];
  return groups
    .slice(0, NETWORK_GROUPS)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')
    .concat('::/64');
}
