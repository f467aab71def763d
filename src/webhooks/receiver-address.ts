import { BlockList, isIP } from 'node:net';
import { isForbidden } from '../sources/http/forbidden-address.ts';

const LONGEST = 2000;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/**
 * Reads the address of a receiver that an organization names. Its messages are encrypted: `http` reaches only this machine.
 * @returns the address, or what is wrong with the text
 */
export function readReceiverAddress(text: string): URL | { readonly problem: string } {
  const url = text.length <= LONGEST && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return { problem: `must be a URL of at most ${LONGEST} characters` };
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname)))
    return { problem: 'must start with https://; http:// is possible for a receiver on this machine' };
  if (url.username !== '' || url.password !== '')
    return { problem: 'must not hold a user name or password: the receiver checks the signature instead' };
  if (isForbidden(url.hostname))
    return { problem: 'must not be a link-local address or a metadata service; name another host' };
  return url;
}

function isLoopback(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '');
  const version = isIP(bare);
  return version === 0 ? bare === 'localhost' : LOOPBACK.check(bare, version === 4 ? 'ipv4' : 'ipv6');
}
