/** The signed-in operator. Views hide actions that the role does not allow; the server checks the role as well. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { includesRole, type Role } from '../../../../src/domain/operator.ts';

export interface SignedIn {
  readonly name: string;
  readonly role: Role;
}

/** Opens the sign-in page, which returns to this page. The promise never settles: the browser leaves the page. */
export function signInAgain(): Promise<never> {
  location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  return new Promise(() => {});
}

let session: Promise<SignedIn | undefined> | undefined;
let known: SignedIn | undefined;

/** Requests the session only once: repeated requests of an open page would extend the session. */
function readSession(): Promise<SignedIn | undefined> {
  session ??= fetch('/api/session', { headers: { accept: 'application/json' } })
    .then(async (response) => {
      if (response.status === 401) return signInAgain();
      known = response.ok ? ((await response.json()) as SignedIn) : undefined;
      return known;
    })
    .catch(() => {
      session = undefined;
      return undefined;
    });
  return session;
}

/** Returns undefined until the first answer, and on a server without operators. */
export function useSignedIn(): SignedIn | undefined {
  const [signedIn, setSignedIn] = useState(known);
  useEffect(() => void readSession().then(setSignedIn), []);
  return signedIn;
}

/** Returns true if the operator has at least this role, and false until the first answer. */
export function useHasRole(role: Role): boolean {
  const signedIn = useSignedIn();
  return signedIn !== undefined && includesRole(signedIn.role, role);
}

interface RequireRoleProps {
  readonly minRole: Role;
  readonly children: ComponentChildren;
}

/** Shows its children only to operators with at least this role. */
export function RequireRole({ minRole, children }: RequireRoleProps) {
  return useHasRole(minRole) ? children : null;
}
