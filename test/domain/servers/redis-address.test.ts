import { describe, expect, it } from 'vitest';
import { redisAddress } from '../../../src/domain/servers/redis-address.ts';

const noLogin = { username: undefined, password: undefined };

describe('the address of Redis', () => {
  it.each([
    ['redis://127.0.0.1:6379/2', { kind: 'server', url: 'redis://127.0.0.1:6379/2' }],
    ['rediss://u:p@h', { kind: 'server', url: 'rediss://u:p@h' }],
    [
      'redis+cluster://a:7000,b,[::1]:7002',
      {
        kind: 'cluster',
        hosts: [
          { host: 'a', port: 7000 },
          { host: 'b', port: 6379 },
          { host: '::1', port: 7002 },
        ],
        ...noLogin,
        tls: false,
      },
    ],
    [
      'rediss+cluster://u:p%40ss,word@a',
      {
        kind: 'cluster',
        hosts: [{ host: 'a', port: 6379 }],
        username: 'u',
        password: 'p@ss,word',
        tls: true,
      },
    ],
    [
      'redis+sentinel://:p@a,b:1/my%20master?sentinel_user=s&sentinel_password=%3Fx',
      {
        kind: 'sentinel',
        hosts: [
          { host: 'a', port: 26_379 },
          { host: 'b', port: 1 },
        ],
        master: 'my master',
        username: undefined,
        password: 'p',
        tls: false,
        sentinelUsername: 's',
        sentinelPassword: '?x',
      },
    ],
  ])('%s', (url, address) => {
    expect(redisAddress(url)).toEqual(address);
  });

  it.each([
    ['http://secret@h', 'must be redis://'],
    ['redis+cluster://', 'host:port,host:port'],
    ['redis+cluster://a,,b', 'host:port,host:port'],
    ['redis+cluster://a:99999', 'host:port,host:port'],
    ['redis+cluster://secret@a', 'user:password@'],
    ['redis+cluster://:secret@a/1', 'one database'],
    ['redis+sentinel://:secret@a', 'mymaster'],
    ['redis+sentinel://:secret@a/m/1', 'mymaster'],
    ['redis+sentinel://a/m?password=secret', 'sentinel_password'],
    ['redis+sentinel://a/%zz', '%25'],
    ['redis+proxy://secret@a', 'must be redis://'],
  ])('%s is rejected, and the message repeats no secret', (url, remedy) => {
    const refused = () => redisAddress(url);
    expect(refused).toThrow(remedy);
    expect(refused).not.toThrow('secret@');
    expect(refused).not.toThrow('=secret');
  });
});
