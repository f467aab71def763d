import { SourceError, type SourceHttp } from '../source.ts';

/** A provider whose catalogue is joined from two of its hosts. */
export interface TwoHosts {
  /** Matches the path of the source's URL, such as `/subscriptions/…`. Its first group is what stands before that. */
  readonly below: RegExp;
  /** A URL of the right form, for an operator. */
  readonly example: string;
  /** The name of the provider's first host. */
  readonly first: RegExp;
  /** The address of the provider's second host. */
  readonly second: string;
  readonly credentials: 'same' | 'key' | 'none';
}

/**
 * The second host of a source. Where the source's URL is not the provider's own (a gateway, a replay), both hosts are
 * reached through that URL, with the source's credentials.
 * @throws SourceError `misconfigured` when the source's URL has another form
 */
export function siblingHost(http: SourceHttp, hosts: TwoHosts): SourceHttp {
  const { origin, hostname, pathname } = http.base;
  const before = hosts.below.exec(pathname)?.[1];
  if (before === undefined)
    throw new SourceError('misconfigured', `the source's URL must look like ${hosts.example}`);
  if (hosts.first.test(hostname)) return http.at(hosts.second, hosts.credentials);
  return http.at(origin + before, hosts.credentials === 'none' ? 'same' : hosts.credentials);
}
