/** The pages without the console's program: sign-in, metrics, problems. They have no scripts, and look like the console. */

const STYLE = `
  :root {
    color-scheme: light dark;
    --page: light-dark(#f6f7f9, #14171c); --card: light-dark(#fff, #1c2027); --text: light-dark(#1b1f27, #e6e9ef);
    --muted: light-dark(#566072, #a2abba); --line: light-dark(#dde1e8, #323946); --link: light-dark(#1f57b8, #8db8ff);
    --bad: light-dark(#b3261e, #ff9d94); --bad-soft: light-dark(#fde4e1, #43201d); --soft: light-dark(#e8ebf0, #2a303b);
    font: 15px/1.5 system-ui, sans-serif; accent-color: var(--link);
  }
  * { box-sizing: border-box }
  body { margin: 0; background: var(--page); color: var(--text); scrollbar-gutter: stable }
  a { color: var(--link); text-underline-offset: 2px }
  :focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 3px }
  .bar { display: flex; flex-wrap: wrap; gap: 4px 20px; align-items: center; min-height: 54px; padding: 10px 24px;
    background: var(--card); border-bottom: 1px solid var(--line) }
  .bar a { font-weight: 700; color: var(--text); text-decoration: none }
  .bar a:hover { text-decoration: underline }
  main { max-width: 460px; margin: 0 auto; padding: 64px 24px }
  main.wide { max-width: 1280px; padding: 20px 24px 64px }
  h1 { margin: 0 0 12px; font-size: 24px; line-height: 1.3; overflow-wrap: anywhere }
  h2 { margin: 28px 0 10px; font-size: 17px }
  p, ul { margin: 0 0 12px }
  .card { padding: 22px 24px; background: var(--card); border: 1px solid var(--line); border-radius: 8px }
  .card > :last-child { margin-bottom: 0 }
  .muted { color: var(--muted) }
  label { display: grid; gap: 2px; margin-bottom: 12px }
  label > span { font-size: 13px; color: var(--muted) }
  input, button, .button { font: inherit; color: var(--text); background: var(--card); border: 1px solid var(--line);
    border-radius: 6px; min-height: 36px; padding: 5px 12px; max-width: 100% }
  input { width: 100% }
  button, .button { display: inline-block; cursor: pointer; text-decoration: none }
  button:hover, .button:hover { border-color: var(--link) }
  button.main { color: light-dark(#fff, #0d1a2d); background: var(--link); border-color: var(--link); font-weight: 600 }
  code { font-family: ui-monospace, monospace; font-size: 14px; overflow-wrap: anywhere }
  [role=alert] { padding: 10px 14px; color: var(--bad); background: var(--bad-soft); border-radius: 8px; overflow-wrap: anywhere }
  .metrics { padding: 0; list-style: none; background: var(--card); border: 1px solid var(--line); border-radius: 8px }
  .metrics > li + li { border-top: 1px solid var(--line) }
  summary, .one { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 16px; padding: 8px 14px }
  summary { cursor: pointer }
  .metrics summary code::before { content: '▸ ' }
  .metrics [open] > summary code::before { content: '▾ ' }
  .whole { white-space: nowrap }
  form { margin-bottom: 16px }
  summary:hover { background: var(--soft) }
  main > details { margin-top: 28px }
  .metrics strong, td { font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
  .metrics .muted { font-size: 13px }
  .help { grid-column: 1 / -1 }
  table { width: calc(100% - 28px); margin: 0 14px 12px; border-collapse: collapse }
  td { padding: 3px 0; border-top: 1px solid var(--line); vertical-align: top }
  pre { margin: 0; padding: 0 14px; overflow-x: auto; font-size: 13px }
  td + td { padding-left: 16px; text-align: right }
  @media (max-width: 760px) {
    .bar { padding: 10px 14px }
    main, main.wide { padding: 24px 14px 48px }
  }
`;

interface PageOptions {
  /** HTML of the head. */
  readonly head?: string;
  /** The page uses the width of the window. */
  readonly isWide?: boolean;
}

/** Returns a page. @param body HTML */
export function page(title: string, body: string, { head = '', isWide = false }: PageOptions = {}): string {
  // Without this icon, browsers request /favicon.ico and report the error.
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} – Fleetbook</title>
<link rel="icon" href="data:,">${head}
<style>${STYLE}</style>
<header class="bar"><a href="/">Fleetbook console</a></header>
<main${isWide ? ' class="wide"' : ''}>
${isWide ? body : `<div class="card">\n${body}\n</div>`}
</main>
</html>
`;
}

export const alert = (text: string) => `<p role="alert">${escaped(text)}</p>\n`;

/** @param isLasting true if a second request would have the same answer */
export function problemPage(title: string, error: string, isLasting = false): string {
  const next = isLasting
    ? '<a class="button" href="/">Open the first page</a>'
    : '<a class="button" href="">Try again</a>';
  return page(
    title,
    `<h1>${escaped(title)}</h1>\n${isLasting ? `<p>${escaped(error)}` : alert(error)}<p>${next}`,
  );
}

interface Metric {
  readonly name: string;
  help: string;
  kind: string;
  readonly series: (readonly [labels: string, value: string])[];
}

/** Shows metrics in the text format of Prometheus. */
export function metricsPage(text: string): string {
  const metrics = metricsIn(text);
  const isOwn = ({ name }: Metric) => name.startsWith('fleetbook_');
  const section = (title: string, rows: readonly Metric[]) =>
    rows.length === 0
      ? ''
      : `<h2>${title}</h2>\n<ul class="metrics">\n${rows.map(metricRow).join('')}</ul>\n`;
  return page(
    'Metrics',
    `<h1>Metrics</h1>
<p class="muted">The values at the time of this request. Programs get them as text: Prometheus scrapes this address with a token.
${metrics.length === 0 ? '<p>This process has no metrics.\n' : ''}${section('Fleetbook', metrics.filter(isOwn))}${section(
  'Process and Node.js',
  metrics.filter((each) => !isOwn(each)),
)}<details><summary>As text</summary>
<pre tabindex="0" aria-label="Metrics in the text format of Prometheus">${escaped(text)}</pre></details>`,
    { isWide: true },
  );
}

function metricRow({ name, help, kind, series }: Metric): string {
  const [first] = series;
  const isOne = series.length === 1 && first !== undefined && !first[0].includes(',');
  const count = series.length === 1 ? '1 series' : `${series.length} series`;
  const head = `<code>${escaped(name)}</code> <strong>${isOne ? escaped(first[1]) : `<span class="muted">${count}</span>`}</strong>
<span class="help muted">${escaped(help)} <em>${escaped(kind)}</em></span>`;
  if (isOne || series.length === 0) return `<li class="one">${head}\n`;
  const rows = series.map(([labels, value]) => `<tr><td>${escaped(labels)}<td>${escaped(value)}\n`);
  return `<li><details><summary>${head}</summary><table>\n${rows.join('')}</table></details>\n`;
}

/** Reads the text format: `# HELP name text`, `# TYPE name kind`, `name{labels} value`. */
function metricsIn(text: string): Metric[] {
  const found: Metric[] = [];
  for (const line of text.split('\n')) {
    const [mark, word = '', name = '', ...rest] = line.split(' ');
    if (mark === '#') {
      if (word !== 'HELP' && word !== 'TYPE') continue;
      let metric = found.at(-1);
      if (metric?.name !== name) {
        metric = { name, help: '', kind: '', series: [] };
        found.push(metric);
      }
      if (word === 'HELP') metric.help = rest.join(' ');
      else metric.kind = rest.join(' ');
      continue;
    }
    const metric = found.at(-1);
    const end = line.lastIndexOf(' ');
    if (metric === undefined || end < 0) continue;
    const series = line.slice(0, end);
    // `_bucket`, `_sum` and `_count` of a histogram stay.
    const own = series.startsWith(metric.name) ? series.slice(metric.name.length) : series;
    const brace = own.indexOf('{');
    const labels = brace < 0 ? own : `${own.slice(0, brace)} ${own.slice(brace + 1, -1)}`;
    metric.series.push([labels.replaceAll('",', '", ').trim(), line.slice(end + 1)]);
  }
  return found;
}

/** Escapes text for an element or a quoted attribute. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
