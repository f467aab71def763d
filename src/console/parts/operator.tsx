/** Who is signed in, and the way out. */
import { useEffect, useState } from 'preact/hooks';

interface SignedIn {
  readonly name: string;
  readonly role: string;
}

/** Nothing where nobody can sign in by name. */
export function Operator() {
  const [signedIn, setSignedIn] = useState<SignedIn>();
  // Once, and not with every change: a page that lies open must not keep its session alive by this.
  useEffect(() => {
    void fetch('/api/session', { headers: { accept: 'application/json' } })
      .then(async (response) => (response.ok ? setSignedIn((await response.json()) as SignedIn) : undefined))
      .catch(() => undefined);
  }, []);
  if (signedIn === undefined) return null;
  return (
    <form class="operator" method="post" action="/logout">
      <span>
        {signedIn.name}, {signedIn.role}
      </span>
      <button type="submit">Sign out</button>
    </form>
  );
}
