/** Accepts every IPv6 address, with or without a zone. It is no strict check. */
const IPV6 = /^(?=.*:)[0-9a-f:.]{2,45}(?:%.*)?$/i;

/** Leading 16-bit groups of an IPv6 address: the /64 of a network. Its subscriber chooses the other groups freely. */
const NETWORK_GROUPS = 4;

/** Returns the key of a caller: the /64 of an IPv6 address, the IPv4 address of a mapped one, any other text unchanged. */
export function addressKey(address: string): string {
  if (!IPV6.test(address)) return address;
  const [bare = ''] = address.toLowerCase().split('%');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(bare);
  if (mapped?.[1]) return mapped[1];
  const [before = '', after] = bare.split('::');
  const head = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  // An IPv4 address at the end fills two groups.
  const count = head.length + tail.length + (bare.includes('.') ? 1 : 0);
  const groups = [...head, ...Array.from({ length: 8 - count }, () => '0'), ...tail];
  return groups
    .slice(0, NETWORK_GROUPS)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')
    .concat('::/64');
}
