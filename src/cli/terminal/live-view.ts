/** A view that a terminal shows until somebody ends it, drawn again every few seconds. */
import { setTimeout as sleep } from 'node:timers/promises';
import { harmless, harmlessLines } from '../../lib/control-characters.ts';

export interface LiveInput {
  readonly isTTY?: boolean;
  setRawMode?(mode: boolean): unknown;
  on(event: 'data', listener: (chunk: Buffer) => void): unknown;
  off(event: 'data', listener: (chunk: Buffer) => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

export interface LiveOutput {
  readonly rows?: number;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface LiveViewOptions {
  /** The whole view as text, made anew for each drawing. One that fails is told below the last one, and tried again. */
  readonly draw: () => Promise<string>;
  /** A failure in words that say what to mend; undefined for its own message. */
  readonly problemOf: (error: unknown) => string | undefined;
  readonly input: LiveInput;
  readonly output: LiveOutput;
  /** Milliseconds between two drawings. */
  readonly everyMs: number;
  /** Ends it from outside. */
  readonly stop: Promise<unknown>;
}

/** The terminal's second screen, so that what stood on the first one is there again afterwards; without its cursor. */
const OPEN = '\x1b[?1049h\x1b[?25l';
const CLOSE = '\x1b[?25h\x1b[?1049l';
const CTRL_C = 3;
/** A terminal with at most so many rows gets no empty line above the note. */
const SMALL = 5;

/** Shows the view until q or Ctrl-C is typed, or `stop`. The terminal is as before afterwards, whatever happened. */
export async function liveView(options: LiveViewOptions): Promise<void> {
  const { draw, problemOf, input, output, everyMs, stop } = options;
  const ended = new AbortController();
  const onData = (typed: Buffer) => {
    if (typed.includes('q') || typed.includes(CTRL_C)) ended.abort();
  };
  void stop.then(() => ended.abort());
  input.setRawMode?.(true);
  input.on('data', onData);
  input.resume();
  output.write(OPEN);
  try {
    let last = '';
    while (!ended.signal.aborted) {
      let note = `every ${everyMs / 1000} s; q ends`;
      try {
        last = await draw();
      } catch (error) {
        note = `no new figures, tried again: ${problemOf(error) ?? String(error)}; q ends`;
      }
      output.write(screen(last, note, output.rows || 24, output.columns || 80));
      await sleep(everyMs, undefined, { signal: ended.signal }).catch(() => {});
    }
  } finally {
    output.write(CLOSE);
    input.off('data', onData);
    input.setRawMode?.(false);
    input.pause();
  }
}

/** One drawing, which overwrites the last one without flicker. The first line is always there, and no line takes two rows. */
function screen(view: string, note: string, rows: number, columns: number): string {
  const lines = harmlessLines(view.trimEnd()).split('\n');
  const margin = rows > SMALL ? [''] : [];
  const room = Math.max(1, rows - 1 - margin.length);
  const shown = lines.length <= room ? lines : lines.slice(0, Math.max(1, room - 1));
  if (shown.length < lines.length && room > 1) shown.push(`… ${lines.length - shown.length} more lines`);
  const drawn = [...shown, ...margin, harmless(note)].slice(0, rows);
  const cut = (line: string) => (line.length <= columns ? line : `${line.slice(0, columns - 1)}…`);
  return `\x1b[H${drawn.map((line) => `${cut(line)}\x1b[K`).join('\r\n')}\x1b[J`;
}
