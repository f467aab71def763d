/** Pages that work without script: signing in, refusals, metrics. */
import { ownPath } from './own-site.ts';

export interface LoginPage {
  /** Where to go afterwards: a path of this site. */
  readonly next: string;
  /** What went wrong before. */
  readonly problem?: string | undefined;
  /** Where sign-in by OpenID Connect begins, and the host of its issuer. */
  readonly oidc?: { readonly start: string; readonly issuer: string } | undefined;
}

const STYLE = `
  :root { color-scheme: light dark }
  body { font: 16px/1.6 system-ui, sans-serif; max-width: 38rem; margin: 4rem auto; padding: 0 1rem }
  label { display: block; margin-top: 1rem }
  input { display: block; box-sizing: border-box; width: 100%; max-width: 28rem; padding: .4rem; font: inherit }
  .button { display: inline-block; padding: .4rem 1.2rem; border: 1px solid; border-radius: .25rem; text-decoration: none }
  button { margin-top: 1rem; padding: .4rem 1.2rem; font: inherit }
  code { overflow-wrap: anywhere }
  [role=alert] { border-left: .25rem solid #c33; padding-left: .75rem }
  body:has(pre) { max-width: none; margin: 1rem auto }
  pre { overflow-x: auto }
`;

/** A page. @param body HTML @param head HTML of the head */
export function page(title: string, body: string, head = ''): string {
  // Without an icon browsers would request /favicon.ico and report the refusal.
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)} · Fleetbook operations</title>
<link rel="icon" href="data:,">${head}
<style>${STYLE}</style>
<main>
${body}
</main>
</html>
`;
}

const alert = (text: string) => `<p role="alert">${escaped(text)}</p>\n`;

export function loginPage({ next, problem, oidc }: LoginPage): string {
  const to = oidc && `${oidc.start}?next=${encodeURIComponent(next)}`;
  const link = oidc
    ? `<p><a class="button" href="${escaped(to ?? '')}">Sign in by ${escaped(oidc.issuer)}</a>\n<p>Or with a token:\n`
    : '';
  return page(
    'Sign in',
    `<h1>Fleetbook operations</h1>
${problem === undefined ? '' : alert(problem)}${link}<form method="post" action="/login">
  <input type="hidden" name="next" value="${escaped(next)}">
  <label>Token <input name="token" type="password" autocomplete="current-password" maxlength="256" required autofocus></label>
  <button>Sign in</button>
</form>
<p>No token yet? On the server:<br><code>fleetbook operator create &lt;name&gt; --role&nbsp;admin</code>`,
  );
}

/** Says why a browser gets nothing. */
export function problemPage(title: string, why: string): string {
  return page(title, `<h1>${escaped(title)}</h1>\n${alert(why)}<p><a class="button" href="">Try again</a>`);
}

/** Metrics for a browser, with the way back. */
export function metricsPage(metrics: string): string {
  return page(
    'Metrics',
    `<p><a href="/">Fleetbook console</a>
<h1>Metrics</h1>
<pre tabindex="0" aria-label="Metrics in the text format of Prometheus">${escaped(metrics)}</pre>`,
  );
}

/** A page that leads on at once: after a redirect from another site the browser would send no session. */
export function onwardPage(asked: string): string {
  const next = escaped(ownPath(asked));
  const refresh = `\n<meta http-equiv="refresh" content="0;url=${next}">`;
  return page('Signed in', `<p>You are signed in. <a href="${next}">Go on</a>`, refresh);
}

/** Text inside an element or a quoted attribute. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
