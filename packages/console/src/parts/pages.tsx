/** The links to the pages. On a narrow screen they are one line, which scrolls, and fades where more links follow. */
import { type ComponentChildren, createRef } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';

interface PagesProps {
  readonly path: string;
  /** The number of links: those that need a role follow once the role is known. */
  readonly count: number;
  readonly children: ComponentChildren;
}

export function Pages({ path, count, children }: PagesProps) {
  const nav = useMemo(() => createRef<HTMLElement>(), []);
  const [more, setMore] = useState('');
  useEffect(() => {
    const measure = () => {
      const { scrollLeft = 0, scrollWidth = 0, clientWidth = 0 } = nav.current ?? {};
      const isBefore = scrollLeft > 1;
      const isAfter = scrollLeft + clientWidth < scrollWidth - 1;
      setMore(`${isBefore ? 'before' : ''} ${isAfter ? 'after' : ''}`);
    };
    const sized = new ResizeObserver(measure);
    for (const each of [nav.current, ...(nav.current?.children ?? [])]) if (each) sized.observe(each);
    nav.current?.addEventListener('scroll', measure, { passive: true });
    return () => {
      sized.disconnect();
      nav.current?.removeEventListener('scroll', measure);
    };
  }, [nav]);
  useEffect(() => {
    const link = nav.current?.querySelector<HTMLElement>('[aria-current]');
    if (nav.current && link)
      nav.current.scrollLeft = link.offsetLeft - (nav.current.clientWidth - link.offsetWidth) / 2;
  }, [nav, path, count]);
  return (
    <nav ref={nav} class={more} aria-label="Console">
      {children}
    </nav>
  );
}
