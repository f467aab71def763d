import { isForbidden } from '../../sources/http/forbidden-address.ts';

const LONGEST = 2000;

/**
 * Reads the address of a receiver that an organization names. Without TLS an address could reach a program of the worker's
 * machine or network that never expects requests of others.
 * @returns the address, or what is wrong with the text
 */
export function readReceiverAddress(text: string): URL | { readonly problem: string } {
  const url = text.length <= LONGEST && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return { problem: `must be a URL of at most ${LONGEST} characters` };
  if (url.protocol !== 'https:')
    return {
      problem: 'must start with https://; a proxy with a certificate can be in front of the receiver',
    };
  if (url.username !== '' || url.password !== '')
    return { problem: 'must not hold a user name or password: the receiver checks the signature instead' };
  if (isForbidden(url.hostname))
    return { problem: 'must not be a link-local address or a metadata service; name another host' };
  return url;
}
