/** The signed-in operator. Views hide actions that the role does not allow; the server refuses them anyway. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { includesRole, type Role } from '../../../../src/domain/operator.ts';

export interface SignedIn {
  readonly name: string;
  readonly role: Role;
}

/** Opens the sign-in page, which leads back to this page. @returns a promise that never settles */
export function signInAgain(): Promise<never> {
  location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  return new Promise(() => {});
}

let session: Promise<SignedIn | undefined> | undefined;

/** Requests the session once: repeated requests of an open page would keep the session alive. */
function readSession(): Promise<SignedIn | undefined> {
  session ??= fetch('/api/session', { headers: { accept: 'application/json' } })
    .then(async (response) => {
      if (response.status === 401) return signInAgain();
      return response.ok ? ((await response.json()) as SignedIn) : undefined;
    })
    .catch(() => {
      session = undefined;
      return undefined;
    });
  return session;
}

/** Undefined until the first answer, and on a server without operators. */
export function useSignedIn(): SignedIn | undefined {
  const [signedIn, setSignedIn] = useState<SignedIn>();
  useEffect(() => void readSession().then(setSignedIn), []);
  return signedIn;
}

/** Whether the operator has at least this role; false until the first answer. */
export function useMay(role: Role): boolean {
  const signedIn = useSignedIn();
  return signedIn !== undefined && includesRole(signedIn.role, role);
}

/** Shows its children only to operators with at least this role. */
export function May({ as: role, children }: { readonly as: Role; readonly children: ComponentChildren }) {
  return useMay(role) ? children : null;
}
