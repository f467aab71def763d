/** What drawing on a canvas needs to know of the page. */
import { useEffect, useState } from 'preact/hooks';

/** Pixels between the paddings of the element. */
export function widthIn(element: HTMLElement): number {
  const { paddingLeft, paddingRight } = getComputedStyle(element);
  return Math.max(50, element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight));
}

/** A colour of the page as a canvas takes it, which knows no variables of CSS and no light-dark(). @param name `--muted` */
export function resolved(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** A canvas keeps the colours that it was drawn with: this is another value when the page has others. */
export function useColourScheme(): boolean {
  const [isDark, setIsDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const onChange = () => setIsDark(scheme.matches);
    scheme.addEventListener('change', onChange);
    return () => scheme.removeEventListener('change', onChange);
  }, []);
  return isDark;
}
