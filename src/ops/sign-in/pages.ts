/** The page by which operators sign in. It works without script. */
import { ownPath } from './own-path.ts';

export interface LoginPage {
  /** Where to go afterwards: a path of this site. */
  readonly next: string;
  /** What went wrong before. */
  readonly problem?: string;
  /** Where sign-in by OpenID Connect begins, and the host of its issuer. */
  readonly oidc?: { readonly start: string; readonly issuer: string } | undefined;
}

/** Browsers would ask for /favicon.ico, and say that it is refused. */
export const NO_ICON = '<link rel="icon" href="data:,">';

export const PAGE_STYLE = `
  :root { color-scheme: light dark }
  body { font: 16px/1.6 system-ui, sans-serif; max-width: 38rem; margin: 4rem auto; padding: 0 1rem }
  label { display: block; margin-top: 1rem }
  input { display: block; box-sizing: border-box; width: 100%; max-width: 22rem; padding: .4rem; font: inherit }
  .button { display: inline-block; padding: .4rem 1.2rem; border: 1px solid; border-radius: .25rem; text-decoration: none }
  button { margin-top: 1rem; padding: .4rem 1.2rem; font: inherit }
  [role=alert] { border-left: .25rem solid #c33; padding-left: .75rem }
`;

export function loginPage({ next, problem, oidc }: LoginPage): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sign in · Fleetbook operations</title>
${NO_ICON}
<style>${PAGE_STYLE}</style>
<main>
<h1>Fleetbook operations</h1>
${problem === undefined ? '' : `<p role="alert">${escaped(problem)}</p>\n`}${oidcLink(oidc, next)}<form method="post" action="/login">
  <input type="hidden" name="next" value="${escaped(next)}">
  <label>Token <input name="token" type="password" autocomplete="current-password" maxlength="256" required autofocus></label>
  <button>Sign in</button>
</form>
<p>No token yet? On the server: <code>fleetbook operator create &lt;name&gt; --role admin</code>
</main>
</html>
`;
}

/** Why nothing is shown, for somebody who looks by a browser. */
export function problemPage(title: string, why: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)} · Fleetbook operations</title>
${NO_ICON}
<style>${PAGE_STYLE}</style>
<main>
<h1>${escaped(title)}</h1>
<p role="alert">${escaped(why)}</p>
<p><a class="button" href="">Try again</a>
</main>
</html>
`;
}

/** Metrics for a browser, with the way back. */
export function metricsPage(metrics: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Metrics · Fleetbook operations</title>
${NO_ICON}
<style>${PAGE_STYLE} body { max-width: none; margin: 1rem auto } pre { overflow-x: auto }</style>
<main>
<p><a href="/">Fleetbook console</a>
<h1>Metrics</h1>
<pre tabindex="0" aria-label="Metrics in the text format of Prometheus">${escaped(metrics)}</pre>
</main>
</html>
`;
}

function oidcLink(oidc: LoginPage['oidc'], next: string): string {
  if (oidc === undefined) return '';
  const to = `${oidc.start}?next=${encodeURIComponent(next)}`;
  return `<p><a class="button" href="${escaped(to)}">Sign in by ${escaped(oidc.issuer)}</a>\n<p>Or with a token:\n`;
}

/** A page that leads on at once: a request that another site's page has led to carries no session. */
export function onwardPage(asked: string): string {
  const next = ownPath(asked);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="0;url=${escaped(next)}">
<title>Signed in · Fleetbook operations</title>
${NO_ICON}
<style>${PAGE_STYLE}</style>
<p>You are signed in. <a href="${escaped(next)}">Go on</a>
</html>
`;
}

/** Text inside an element or a quoted attribute. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
