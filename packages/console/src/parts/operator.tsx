import { useSignedIn } from '../lib/session.ts';

/** Shows the signed-in operator and a button to sign out. */
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
