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

/** The colours of the operators' console, in light and dark. */
const COLOURS = {
  'background-1': ['#ffffff', '#14171c'],
  'background-2': ['#f6f7f9', '#1c2027'],
  'background-3': ['#e8ebf0', '#2a303b'],
  'background-accent': ['#1f57b814', '#8db8ff1f'],
  'border-color': ['#dde1e8', '#323946'],
  'color-1': ['#1b1f27', '#e6e9ef'],
  'color-2': ['#3f4856', '#c3cad6'],
  'color-3': ['#566072', '#a2abba'],
  'color-accent': ['#1f57b8', '#8db8ff'],
  'color-green': ['#16703a', '#66cf8f'],
  'color-red': ['#b3261e', '#ff9d94'],
  'color-yellow': ['#8a5200', '#f2b65c'],
  'color-blue': ['#1f57b8', '#8db8ff'],
  'color-orange': ['#a8480a', '#ffab66'],
  'color-purple': ['#8b1e5a', '#f29ac8'],
  'button-1': ['#1f57b8', '#8db8ff'],
  'button-1-hover': ['#19479a', '#a9c9ff'],
  'button-1-color': ['#ffffff', '#14171c'],
} as const;

const coloursOf = (mode: 0 | 1) =>
  Object.entries(COLOURS)
    .map(([name, values]) => `  --scalar-${name}: ${values[mode]};`)
    .join('\n');

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
${coloursOf(0)}
}
.dark-mode {
${coloursOf(1)}
}`;

/** @param program name of the page's program below `docs/`; undefined if it is not built */
export function referencePage(program: string | undefined): string {
  const links =
    '<a href="openapi.json">openapi.json</a> for programs and <a href="llms.txt">llms.txt</a> as plain text';
  const body =
    program === undefined
      ? `<main><h1>The reference page is not built</h1>
<p>Run <code>node src/http/reference/build.mjs --strict</code> and load this page again. ${links} also describe the API.</main>`
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
