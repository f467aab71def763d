/** A server of a URL with several. */
export interface ServerHost {
  readonly host: string;
  readonly port: number;
}

/** Parses `host`, `host:port` or `[IPv6]:port`. @throws Error with the accepted form; it repeats no part of the text */
export function serverHost(text: string, standardPort: number): ServerHost {
  const [, host = '', port] = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s%]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const number = port === undefined ? standardPort : Number(port);
  if (host === '' || number < 1 || number > 65_535)
    throw new Error('must name its hosts as host:port,host:port');
  return { host: host.replace(/^\[|\]$/g, ''), port: number };
}
