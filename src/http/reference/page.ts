/** The reference page: shows `/openapi.json` in a browser, with a form to send requests. Pure. */
import { createHash } from 'node:crypto';

/**
 * The configuration of the page's program. It requests nothing from other servers: no fonts, proxy, telemetry or assistant. It
 * does not store tokens.
 */
const CONFIGURATION = {
  url: 'openapi.json',
  theme: 'none',
  layout: 'modern',
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  persistAuth: false,
  documentDownloadType: 'json',
  operationTitleSource: 'summary',
  defaultOpenAllTags: true,
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  authentication: { preferredSecurityScheme: 'token' },
};

const SCRIPT = `Scalar.createApiReference('#reference', ${JSON.stringify(CONFIGURATION)});`;

const STYLE = `
:root { color-scheme: light dark; }
body { margin: 0; font-family: system-ui, sans-serif; background: light-dark(#f6f7f9, #14171c); }
noscript { display: block; max-width: 40rem; margin: 4rem auto; padding: 0 1rem; line-height: 1.5; }
.light-mode, .dark-mode {
  --scalar-font: system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif;
  --scalar-font-code: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  --scalar-radius: 6px;
}
.light-mode {
  --scalar-background-1: #ffffff;
  --scalar-background-2: #f6f7f9;
  --scalar-background-3: #e8ebf0;
  --scalar-background-accent: #1f57b814;
  --scalar-border-color: #dde1e8;
  --scalar-color-1: #1b1f27;
  --scalar-color-2: #3f4856;
  --scalar-color-3: #566072;
  --scalar-color-accent: #1f57b8;
  --scalar-color-green: #16703a;
  --scalar-color-red: #b3261e;
  --scalar-color-yellow: #8a5200;
  --scalar-color-blue: #1f57b8;
  --scalar-color-orange: #a8480a;
  --scalar-color-purple: #8b1e5a;
  --scalar-button-1: #1f57b8;
  --scalar-button-1-hover: #19479a;
  --scalar-button-1-color: #ffffff;
}
.dark-mode {
  --scalar-background-1: #14171c;
  --scalar-background-2: #1c2027;
  --scalar-background-3: #2a303b;
  --scalar-background-accent: #8db8ff1f;
  --scalar-border-color: #323946;
  --scalar-color-1: #e6e9ef;
  --scalar-color-2: #c3cad6;
  --scalar-color-3: #a2abba;
  --scalar-color-accent: #8db8ff;
  --scalar-color-green: #66cf8f;
  --scalar-color-red: #ff9d94;
  --scalar-color-yellow: #f2b65c;
  --scalar-color-blue: #8db8ff;
  --scalar-color-orange: #ffab66;
  --scalar-color-purple: #f29ac8;
  --scalar-button-1: #8db8ff;
  --scalar-button-1-hover: #a9c9ff;
  --scalar-button-1-color: #14171c;
}`;

/** @param program name of the page's program below `docs/`; undefined if it is not built */
export function referencePage(program: string | undefined): string {
  const links =
    '<a href="openapi.json">openapi.json</a> for programs and <a href="llms.txt">llms.txt</a> as plain text';
  const body =
    program === undefined
      ? `<main><h1>The reference page is not built</h1>
<p>Run <code>npm run build:reference</code> and load this page again. ${links} also describe the API.</main>`
      : `<noscript>This page needs JavaScript. ${links} also describe the API.</noscript>
<div id="reference"></div>
<script src="docs/${program}"></script>
<script>${SCRIPT}</script>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="The HTTP API of Fleetbook: cloud machines with prices, and database clusters">
<title>Fleetbook API</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
${body}
</body>
</html>
`;
}

/**
 * Allows only this server, and no inline script except that of the page. Inline styles are allowed: the program sets `style`
 * attributes, which no nonce covers.
 */
export const REFERENCE_POLICY = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${createHash('sha256').update(SCRIPT).digest('base64')}'`,
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
