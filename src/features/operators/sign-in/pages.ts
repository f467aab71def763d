/** The pages for signing in. They have no scripts. */
import { alert, escaped, page } from '../../../ops/pages.ts';

export interface LoginPage {
  readonly next: string;
  readonly problem?: string | undefined;
  readonly oidc?: { readonly start: string; readonly issuer: string } | undefined;
}

export function loginPage({ next, problem, oidc }: LoginPage): string {
  const to = oidc && `${oidc.start}?next=${encodeURIComponent(next)}`;
  const link = oidc
    ? `<p><a class="button" href="${escaped(to ?? '')}">Sign in by ${escaped(oidc.issuer)}</a>\n<p>Or with a token:\n`
    : '';
  return page(
    'Sign in',
    `<h1>Sign in</h1>
${problem === undefined ? '' : alert(problem)}${link}<form method="post" action="/login">
  <input type="hidden" name="next" value="${escaped(next)}">
  <label><span>Token</span> <input name="token" type="password" autocomplete="current-password" maxlength="256" required autofocus></label>
  <button class="main">Sign in</button>
</form>
<p class="muted">No token yet? On the server:<br><code>fleetbook operator create &lt;name&gt; <span class="whole">--role admin</span></code>`,
  );
}

/** Returns a page that opens `path` at once: after a redirect from another site, the browser would send no session. */
export function onwardPage(path: string): string {
  const next = escaped(ownPath(path));
  const refresh = `\n<meta http-equiv="refresh" content="0;url=${next}">`;
  return page('Signed in', `<p>You are signed in. <a href="${next}">Continue</a>`, { head: refresh });
}

const HERE = 'http://here.invalid';
/** Browsers read a backslash as a slash, and drop some control characters. */
const AMBIGUOUS = /[\p{Cc}\\]/u;

/** Returns a path of this origin; `/` for other texts. The parsed path is checked again: `/.//host` becomes `//host`. */
export function ownPath(text: string | undefined): string {
  if (text === undefined || !isPath(text)) return '/';
  const url = URL.parse(text, HERE);
  if (url?.origin !== HERE || url.pathname === '/login') return '/';
  const path = url.pathname + url.search;
  return isPath(path) ? path : '/';
}

const isPath = (text: string): boolean => /^\/(?!\/)/.test(text) && !AMBIGUOUS.test(text);
