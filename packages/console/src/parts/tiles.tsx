import { count } from '../lib/format.ts';
import type { Tone } from './basics.tsx';

/** Shows numbers with their names. */
export function Tiles({ tiles }: { tiles: readonly (readonly [n: number, text: string, tone: Tone])[] }) {
  if (tiles.length === 0) return null;
  return (
    <ul class="tiles">
      {tiles.map(([n, text, tone]) => (
        <li key={text} class={tone}>
          <strong>{count(n)}</strong> {text}
        </li>
      ))}
    </ul>
  );
}
