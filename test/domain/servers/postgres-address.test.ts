import { describe, expect, it } from 'vitest';
import { postgresAddress } from '../../../src/domain/servers/postgres-address.ts';

describe('the address of PostgreSQL', () => {
  it('is left to the driver if it names one server', () => {
    const url = 'postgres://me:p%40ss@db.example/fleetbook?sslmode=require';
    expect(postgresAddress(url)).toMatchObject({ isChosen: false, isPooled: false, hosts: [], url });
  });

  it('names several hosts, and requires the one that accepts writes', () => {
    expect(postgresAddress('postgresql://me:pw@one:5433,[::1]:5434,three/fleetbook?sslmode=require')).toEqual(
      {
        hosts: [
          { host: 'one', port: 5433 },
          { host: '::1', port: 5434 },
          { host: 'three', port: 5432 },
        ],
        target: 'read-write',
        isChosen: true,
        isPooled: false,
        url: 'postgresql://me:pw@one:5433/fleetbook?sslmode=require',
      },
    );
  });

  it('states the required kind of server, and whether a pooler is there', () => {
    expect(
      postgresAddress(
        'postgres://one,two/db?target_session_attrs=prefer-standby&sslmode=require&pool_mode=transaction',
      ),
    ).toMatchObject({ target: 'prefer-standby', isPooled: true, url: 'postgres://one/db?sslmode=require' });
    expect(postgresAddress('postgres://one/db?target_session_attrs=standby')).toMatchObject({
      hosts: [{ host: 'one', port: 5432 }],
      isChosen: true,
    });
  });

  it.each([
    ['mysql://one/db', /must be a URL that starts with postgres:\/\/ or postgresql:\/\//],
    ['postgres://me:secret@one:5432,:5433/db', /must name its hosts as host:port,host:port/],
    ['postgres://me:secret@one,two:70000/db', /must name its hosts as host:port,host:port/],
    [
      'postgres://me:secret@one,two/db?target_session_attrs=master',
      /must have one of any, read-write, .* as target_session_attrs/,
    ],
    ['postgres://me:secret@one/db?pool_mode=statement', /must have transaction or session as pool_mode/],
  ])('rejects %s', (url, why) => {
    expect(() => postgresAddress(url)).toThrow(why);
    expect(() => postgresAddress(url)).not.toThrow(/secret/);
  });
});
