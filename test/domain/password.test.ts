import { describe, expect, it } from 'vitest';
import { hashPassword, NOBODYS_HASH, passwordMatches, passwordProblem } from '../../src/domain/password.ts';

const PASSWORD = 'correct horse battery';

describe('a password', () => {
  it('is kept with a salt of its own and the parameters that it was hashed by', async () => {
    const [one, other] = await Promise.all([hashPassword(PASSWORD), hashPassword(PASSWORD)]);
    expect(one).toMatch(/^\$scrypt\$ln=15,r=8,p=3\$[\w-]{22}\$[\w-]{43}$/);
    expect(one).not.toBe(other);
    expect(one).not.toContain('horse');
    expect(await passwordMatches(PASSWORD, one)).toBe(true);
    expect(await passwordMatches(`${PASSWORD} `, one)).toBe(false);
    expect(await passwordMatches('', one)).toBe(false);
  });

  it('is the same in whichever form a keyboard composes it', async () => {
    const hash = await hashPassword('caf\u00e9 und Kuchen');
    expect(await passwordMatches('cafe\u0301 und Kuchen', hash)).toBe(true);
  });

  it('is checked by the parameters that stand in the hash', async () => {
    // RFC 7914, section 12: scrypt("pleaseletmein", "SodiumChloride", 16384, 8, 1).
    const salt = Buffer.from('SodiumChloride').toString('base64url');
    const key = Buffer.from('7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2', 'hex');
    const hash = `$scrypt$ln=14,r=8,p=1$${salt}$${key.toString('base64url')}`;
    expect(await passwordMatches('pleaseletmein', hash)).toBe(true);
    expect(await passwordMatches('pleaseletmeout', hash)).toBe(false);
  });

  it('matches nothing but a hash of ours', async () => {
    expect(await passwordMatches(PASSWORD, NOBODYS_HASH)).toBe(false);
    for (const hash of ['', PASSWORD, '$scrypt$ln=15,r=8,p=3$$', '$2b$10$abcdefghijklmnopqrstuv']) {
      await expect(passwordMatches(PASSWORD, hash)).rejects.toThrow('unknown form');
    }
    // One that would take 64 GiB.
    const huge = NOBODYS_HASH.replace('ln=15', 'ln=26');
    await expect(passwordMatches(PASSWORD, huge)).rejects.toThrow();
  });

  it.each([
    ['short', /has 5 characters; give at least 12/],
    ['x'.repeat(300), /has 300 characters; give at most 256/],
    ['with a \u0007 bell inside', /control character/],
    ['abababababab', /repeats very few characters/],
    ['Lovelace-1815-December', /holds the name/],
    ['correct horse battery', undefined],
    ['пароль из слов', undefined],
  ])('%j is judged', (password, problem) => {
    const found = passwordProblem(password, 'lovelace');
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(problem);
  });
});
