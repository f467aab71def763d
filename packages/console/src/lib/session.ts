/** Who is signed in, and what they may do: what they may not is not offered. The server refuses it all the same. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { includesRole, type Role } from '../../../../src/domain/operator.ts';

export interface SignedIn {
  readonly name: string;
  readonly role: Role;
}

/** Leaves for the sign-in page, which leads back here. @returns a promise that never settles: the page is about to go */
export function signInAgain(): Promise<never> {
  location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  return new Promise(() => {});
}

let asked: Promise<SignedIn | undefined> | undefined;

/** Once, and not with every change: a page that lies open must not keep its session alive by this. */
function ask(): Promise<SignedIn | undefined> {
  asked ??= fetch('/api/session', { headers: { accept: 'application/json' } })
    .then(async (response) => {
      if (response.status === 401) return signInAgain();
      return response.ok ? ((await response.json()) as SignedIn) : undefined;
    })
    .catch(() => {
      asked = undefined;
      return undefined;
    });
  return asked;
}

/** Undefined until it is known, and where nobody can sign in by name. */
export function useSignedIn(): SignedIn | undefined {
  const [signedIn, setSignedIn] = useState<SignedIn>();
  useEffect(() => void ask().then(setSignedIn), []);
  return signedIn;
}

/** Whether who is signed in has at least this role; false until that is known. */
export function useMay(role: Role): boolean {
  const signedIn = useSignedIn();
  return signedIn !== undefined && includesRole(signedIn.role, role);
}

/** What only those see who have at least this role: a button that would be refused helps nobody. */
export function May({ as: role, children }: { readonly as: Role; readonly children: ComponentChildren }) {
  return useMay(role) ? children : null;
}
