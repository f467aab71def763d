import { SourceError, type SourceHttp } from '../source.ts';

/** A provider whose catalogue is joined from two of its hosts. */
export interface TwoHosts {
  /** Ends the path of the source's URL, such as `/subscriptions/…`; its first group is what stands before. */
  readonly below: RegExp;
  /** What the URL has to look like, for an operator. */
  readonly example: string;
  /** The provider's own first host. */
  readonly first: RegExp;
  /** The address of the provider's second host. */
  readonly second: string;
  readonly credentials: 'same' | 'key' | 'none';
}

/**
 * The second host of a source. Behind an address that is not the provider's own — a gateway, a replay — both hosts are
 * asked for at that address, with the source's credentials.
 * @throws SourceError `misconfigured` when the source's URL is not what it has to look like
 */
export function beside(http: SourceHttp, hosts: TwoHosts): SourceHttp {
  const { origin, hostname, pathname } = http.base;
  const before = hosts.below.exec(pathname)?.[1];
  if (before === undefined)
    throw new SourceError('misconfigured', `the source's URL must look like ${hosts.example}`);
  if (hosts.first.test(hostname)) return http.at(hosts.second, hosts.credentials);
  return http.at(origin + before, hosts.credentials === 'none' ? 'same' : hosts.credentials);
}
