import { describe, expect, it } from 'vitest';
import { nextSlots, scheduleInWords } from '../../src/domain/schedule.ts';
import { adapter as ecb } from '../../src/sources/rates/ecb.ts';
import { catalogueAdapters, clusterAdapters } from '../../src/sources/registry.ts';

describe('a schedule in words', () => {
  it.each([
    ['* * * * *', 'every minute'],
    ['*/1 * * * *', 'every minute'],
    ['17 * * * *', 'every hour at minute 17 UTC'],
    ['0,30 * * * *', 'every hour at minutes 0 and 30 UTC'],
    ['*/5 * * * *', 'every 5 minutes'],
    ['2-57/5 * * * *', 'every 5 minutes, from minute 2'],
    ['7 */6 * * *', 'every 6 hours at minute 7 UTC'],
    ['7 */1 * * *', 'every hour at minute 7 UTC'],
    ['7 2-23/6 * * *', 'every 6 hours at minute 7, from 02:07 UTC'],
    ['23 4 * * *', 'every day at 04:23 UTC'],
    ['40 17,5,15 * * *', 'every day at 05:40, 15:40 and 17:40 UTC'],
    ['0 3 * * 1', 'every Monday at 03:00 UTC'],
    ['0 3 * * 0,6', 'every Sunday and Saturday at 03:00 UTC'],
    ['0 3 * * 7', 'every Sunday at 03:00 UTC'],
    ['0 3 * * 1-5', 'every day from Monday to Friday at 03:00 UTC'],
    ['0 12 1,15 * *', 'every month on days 1 and 15 at 12:00 UTC'],
    ['0 12 1 * *', 'every month on day 1 at 12:00 UTC'],
    ['0 0 29 2 *', 'every year on 29 February at 00:00 UTC'],
    [' 17  *   * * * ', 'every hour at minute 17 UTC'],
  ])('%s is %s', (cron, words) => expect(scheduleInWords(cron)).toBe(words));

  it.each([
    '*/7 * * * *',
    '2-40/5 * * * *',
    '7-57/5 * * * *',
    '*/5 3 * * *',
    '*/5 */2 * * *',
    '5 4 1 * 1',
    '5 4 * 2 *',
    '5 4 * * 5-1',
    '5 4 * * MON',
    '5 4 L * *',
    '5 8-18 * * *',
    '5-9 * * * *',
  ])('%s stays unchanged, since its words would be wrong', (cron) => {
    expect(scheduleInWords(cron)).toBe(`cron ${cron} UTC`);
  });

  it('exists for the default of each adapter', () => {
    const all = [...catalogueAdapters, ...clusterAdapters, ecb].map(
      ({ id, schedule }) => [id, schedule, scheduleInWords(schedule)] as const,
    );
    expect(all.length).toBeGreaterThan(15);
    expect(all.filter(([, , words]) => words.startsWith('cron'))).toEqual([]);
  });

  it('with a step of minutes or hours is true of each slot', () => {
    for (const cron of [
      '2-57/5 * * * *',
      '*/15 * * * *',
      '7 */6 * * *',
      '7 2-23/6 * * *',
      '3-58/5 * * * *',
    ]) {
      const [, every, unit] =
        /^every (\d+) (minutes|hours)/.exec(scheduleInWords(cron)) ?? expect.unreachable();
      const gap = Number(every) * (unit === 'hours' ? 3_600_000 : 60_000);
      const slots = nextSlots(cron, new Date('2026-03-01T00:00:00Z'), 60).map(Date.parse);
      expect(new Set(slots.slice(1).map((slot, index) => slot - (slots[index] ?? 0)))).toEqual(
        new Set([gap]),
      );
    }
  });
});
