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

/** Returns a page. @param body HTML @param head HTML of the head */
export function page(title: string, body: string, head = ''): string {
  // Without this icon, browsers request /favicon.ico and report the error.
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

export const alert = (text: string) => `<p role="alert">${escaped(text)}</p>\n`;

export function problemPage(title: string, error: string): string {
  return page(title, `<h1>${escaped(title)}</h1>\n${alert(error)}<p><a class="button" href="">Try again</a>`);
}

export function metricsPage(metrics: string): string {
  return page(
    'Metrics',
    `<p><a href="/">Fleetbook console</a>
<h1>Metrics</h1>
<pre tabindex="0" aria-label="Metrics in the text format of Prometheus">${escaped(metrics)}</pre>`,
  );
}

/** Escapes text for an element or a quoted attribute. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
