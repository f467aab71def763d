import { describe, expect, it } from 'vitest';
import { postgresAddress } from '../../../src/domain/servers/postgres-address.ts';

describe('the address of PostgreSQL', () => {
  it.each([
    'postgres://me:p%40ss@db.example/fleetbook?sslmode=require',
    'postgresql://me:pw@[::1]:5434/fleetbook',
    'postgres://me:a,b@one/db',
  ])('%s is left to the driver', (url) => {
    expect(postgresAddress(url)).toEqual({ isPooled: false, url });
  });

  it('states whether a pooler is there', () => {
    expect(postgresAddress('postgres://one/db?sslmode=require&pool_mode=transaction')).toEqual({
      isPooled: true,
      url: 'postgres://one/db?sslmode=require',
    });
    expect(postgresAddress('postgres://one/db?pool_mode=transaction&pool_mode=session').isPooled).toBe(false);
  });

  it.each([
    ['mysql://one/db', /must be a URL that starts with postgres:\/\/ or postgresql:\/\//],
    ['postgres://me:secret@one:70000/db', /must be a URL that starts with/],
    ['postgres://me:secret@one:5432,two:5433/db', /must name one host: a failover is the job of the address/],
    ['postgres://me:secret@one%2Ctwo/db', /must name one host/],
    [
      'postgres://me:secret@one/db?target_session_attrs=read-write',
      /must not have target_session_attrs: a failover is the job of the address/,
    ],
    ['postgres://me:secret@one/db?pool_mode=statement', /must have transaction or session as pool_mode/],
  ])('rejects %s', (url, why) => {
    expect(() => postgresAddress(url)).toThrow(why);
    expect(() => postgresAddress(url)).not.toThrow(/secret/);
  });
});
