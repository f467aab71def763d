/** Who is signed in, and the way out. */
import { useSignedIn } from '../lib/session.ts';

/** Nothing where nobody can sign in by name. */
export function Operator() {
  const signedIn = useSignedIn();
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
