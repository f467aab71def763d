/** Draws Mermaid diagrams as SVG while the site is built, so that a reader's browser loads no program for them. */
import { renderMermaidSVG } from 'beautiful-mermaid';

/** Returns the Markdown with each diagram drawn. Colours follow the theme of the page. */
export function drawn(markdown) {
  let count = 0;
  return markdown.replaceAll(/^```mermaid\n([\s\S]*?)^```$/gm, (_, source) => {
    const svg = renderMermaidSVG(source, {
      bg: 'var(--sl-color-bg)',
      fg: 'var(--sl-color-white)',
      transparent: true,
    });
    return `<figure class="diagram" role="img" aria-label="diagram ${++count}">\n${ownFonts(unique(svg, count))}\n</figure>`;
  });
}

/** The library's style sheet loads a font from the network, and its lines may be empty, which ends HTML in Markdown. */
function ownFonts(svg) {
  return svg
    .replaceAll(/@import url\([^)]*\);/g, '')
    .replaceAll("'Inter', system-ui, sans-serif", 'inherit')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .join('\n');
}

/** Ids of arrow heads repeat in each diagram of a page. */
function unique(svg, count) {
  return svg
    .replaceAll(/id="(arrowhead[\w-]*)"/g, `id="$1-${count}"`)
    .replaceAll(/url\(#(arrowhead[\w-]*)\)/g, `url(#$1-${count})`);
}
