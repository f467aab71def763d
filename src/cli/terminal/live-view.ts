import { setTimeout as sleep } from 'node:timers/promises';
import { harmless, harmlessLines } from '../../domain/text/control-characters.ts';

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
  /** Returns the whole view as text. A failure is shown below the last view, and retried. */
  readonly draw: () => Promise<string>;
  /** Returns a message with a fix; undefined to show the error's own message. */
  readonly problemOf: (error: unknown) => string | undefined;
  readonly input: LiveInput;
  readonly output: LiveOutput;
  readonly everyMs: number;
  readonly stop: Promise<unknown>;
}

/** Opens and closes the alternate screen without a cursor. Closing shows the previous content again. */
const OPEN = '\x1b[?1049h\x1b[?25l';
const CLOSE = '\x1b[?25h\x1b[?1049l';
const CTRL_C = 3;
/** A terminal with at most this many rows has no empty line above the note. */
const SMALL = 5;

/** Shows the view until q, Ctrl-C or `stop`. Always restores the terminal. */
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
        note = `update failed and is retried: ${problemOf(error) ?? String(error)}; q ends`;
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

/** Returns one drawing, which overwrites the last one without flicker. No line takes two rows. */
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
