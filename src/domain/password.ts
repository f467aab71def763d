/** Passwords of operators: which ones do, and the form in which they are kept. */
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

const LEAST = 12;
const MOST = 256;

/** What scrypt costs: 32 MiB and about a tenth of a second. Kept with each hash, so that it can rise. */
const COST = { ln: 15, r: 8, p: 3 } as const;
const SALT_BYTES = 16;
const KEY_BYTES = 32;

/** The same for whatever a hash in the database says: nobody is made to allocate more. */
const MAX_MEMORY = 256 * 1024 * 1024;

const FORM = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9_-]{16,})\$([A-Za-z0-9_-]{16,})$/;

/** Why a password does not do, with the remedy; undefined when it does. @param name whose it is to be */
export function passwordProblem(password: string, name: string): string | undefined {
  const { length } = [...password];
  if (length < LEAST) return `the password has ${length} characters; give at least ${LEAST}, e.g. four words`;
  if (length > MOST) return `the password has ${length} characters; give at most ${MOST}`;
  if (/\p{Cc}/u.test(password)) return 'the password holds a control character; leave it out';
  if (new Set(password).size < 4) return 'the password repeats very few characters; give another one';
  if (name.length >= 4 && password.toLowerCase().includes(name))
    return 'the password holds the name; give another one';
  return undefined;
}

/** The form in which a password is stored: `$scrypt$ln=…,r=…,p=…$salt$key`. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const key = await derive(password, salt, KEY_BYTES, COST);
  const { ln, r, p } = COST;
  return `$scrypt$ln=${ln},r=${r},p=${p}$${salt.toString('base64url')}$${key.toString('base64url')}`;
}

/** A well-formed hash that no password has. Where a name is unknown it takes as long to check as a real one. */
export const NOBODYS_HASH = `$scrypt$ln=${COST.ln},r=${COST.r},p=${COST.p}$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/** Whether a password has this hash. @throws Error for what `hashPassword` has not made */
export async function passwordMatches(password: string, hash: string): Promise<boolean> {
  const { salt, key, ...cost } = partsOf(hash);
  const expected = Buffer.from(key, 'base64url');
  const found = await derive(password, Buffer.from(salt, 'base64url'), expected.length, cost);
  return timingSafeEqual(found, expected);
}

/** Whether a hash was made at another cost than new ones are. @throws Error for what `hashPassword` has not made */
export function isOutdated(hash: string): boolean {
  const { ln, r, p } = partsOf(hash);
  return ln !== COST.ln || r !== COST.r || p !== COST.p;
}

function partsOf(hash: string) {
  const [, ln, r, p, salt = '', key = ''] = FORM.exec(hash) ?? [];
  if (ln === undefined) throw new Error('a stored password hash has an unknown form');
  return { ln: Number(ln), r: Number(r), p: Number(p), salt, key };
}

/** Typed on another keyboard the same text may have other code points: NFC makes them one. */
function derive(
  password: string,
  salt: Buffer,
  bytes: number,
  { ln, r, p }: { readonly ln: number; readonly r: number; readonly p: number },
): Promise<Buffer> {
  const options = { N: 2 ** ln, r, p, maxmem: MAX_MEMORY };
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, bytes, options, (error, key) => {
      if (error) reject(error);
      else resolve(key);
    });
  });
}
