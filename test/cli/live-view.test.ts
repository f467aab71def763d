import { EventEmitter } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { type LiveViewOptions, liveView } from '../../src/cli/terminal/live-view.ts';
import { until } from '../support/until.ts';

/** A terminal with this number of rows, its output and its keyboard. */
function terminal(rows = 24, columns = 80) {
  const typed = new EventEmitter();
  const input = Object.assign(typed, { isTTY: true, setRawMode: vi.fn(), resume: vi.fn(), pause: vi.fn() });
  let written = '';
  const output = { rows, columns, write: (text: string) => (written += text) };
  /** The lines of the last drawing. */
  const lines = () =>
    (written.split('\x1b[H').at(-1) ?? '')
      .split('\x1b[J')[0]
      ?.split('\r\n')
      .map((line) => line.replace('\x1b[K', ''));
  return {
    input,
    output,
    lines,
    written: () => written,
    type: (key: string) => typed.emit('data', Buffer.from(key)),
  };
}

const never = new Promise<never>(() => {});
const view = (screen: ReturnType<typeof terminal>, more: Partial<LiveViewOptions>) =>
  liveView({
    draw: async () => 'a view\n',
    problemOf: () => undefined,
    input: screen.input,
    output: screen.output,
    everyMs: 5,
    stop: never,
    ...more,
  });

describe('a live view', () => {
  it('is drawn again until q is typed, and restores the terminal', async () => {
    const screen = terminal();
    let drawn = 0;
    const shown = view(screen, { draw: async () => `drawing ${++drawn}\n` });
    await until(() => drawn >= 3);
    screen.type('q');
    await shown;
    expect(screen.lines()?.[0]).toBe(`drawing ${drawn}`);
    expect(screen.written().startsWith('\x1b[?1049h\x1b[?25l')).toBe(true);
    expect(screen.written().endsWith('\x1b[?25h\x1b[?1049l')).toBe(true);
    expect(screen.input.setRawMode.mock.calls).toEqual([[true], [false]]);
    expect(screen.input.listenerCount('data')).toBe(0);
    expect(screen.input.pause).toHaveBeenCalledOnce();
  });

  it.each(['\x03', 'q'])('ends at once by %j, whatever its interval', async (key) => {
    const screen = terminal();
    const shown = view(screen, { everyMs: 3_600_000 });
    await until(() => screen.lines()?.[0] === 'a view');
    screen.type('x');
    screen.type(key);
    await shown;
  });

  it('ends on the signal of its caller', async () => {
    const screen = terminal();
    await view(screen, { everyMs: 3_600_000, stop: Promise.resolve('SIGTERM') });
    expect(screen.written()).toContain('\x1b[?1049l');
  });

  it('keeps the last values while there are no new ones, with the reason', async () => {
    const screen = terminal();
    let isAway = false;
    const draw = async () => {
      if (isAway) throw new Error('ECONNREFUSED');
      return 'figures\n';
    };
    const shown = view(screen, { draw, problemOf: () => 'PostgreSQL does not answer' });
    await until(() => screen.lines()?.[0] === 'figures');
    isAway = true;
    await until(() => screen.lines()?.at(-1)?.includes('PostgreSQL does not answer'));
    expect(screen.lines()?.[0]).toBe('figures');
    isAway = false;
    await until(() => screen.lines()?.at(-1) === 'every 0.005 s; q ends');
    screen.type('q');
    await shown;
  });

  it('fits the terminal, and states how many lines it omits', async () => {
    const screen = terminal(6);
    const shown = view(screen, {
      draw: async () => Array.from({ length: 10 }, (_, i) => `line ${i}`).join('\n'),
    });
    await until(() => screen.lines()?.[0] === 'line 0');
    expect(screen.lines()).toEqual([
      'line 0',
      'line 1',
      'line 2',
      '… 7 more lines',
      '',
      'every 0.005 s; q ends',
    ]);
    screen.type('q');
    await shown;
  });

  it.each([
    [2, 20],
    [3, 20],
    [4, 12],
  ])('keeps its first line in a terminal of %i rows and %i columns', async (rows, columns) => {
    const screen = terminal(rows, columns);
    const shown = view(screen, {
      draw: async () => ['HEAD', ...Array.from({ length: 10 }, (_, i) => `line ${i}`.repeat(9))].join('\n'),
    });
    await until(() => screen.lines()?.[0] === 'HEAD');
    expect(screen.lines()?.length).toBeLessThanOrEqual(rows);
    for (const line of screen.lines() ?? []) expect(line.length).toBeLessThanOrEqual(columns);
    screen.type('q');
    await shown;
  });
});
