import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { latestSlot, nextSlot, nextSlots } from '../../src/domain/schedule.ts';
import { jobId } from '../../workers/queues.ts';

describe('the slots of a schedule', () => {
  it.each([
    // schedule, now, latest, next
    ['17 * * * *', '2026-03-01T10:17:00.000Z', '2026-03-01T10:17:00Z', '2026-03-01T11:17:00Z'],
    ['17 * * * *', '2026-03-01T10:16:59.999Z', '2026-03-01T09:17:00Z', '2026-03-01T10:17:00Z'],
    ['17 * * * *', '2026-03-01T10:17:00.001Z', '2026-03-01T10:17:00Z', '2026-03-01T11:17:00Z'],
    ['17 * * * *', '2026-03-01T10:17:59.999Z', '2026-03-01T10:17:00Z', '2026-03-01T11:17:00Z'],
    ['* * * * *', '2026-12-31T23:59:59.999Z', '2026-12-31T23:59:00Z', '2027-01-01T00:00:00Z'],
    ['*/15 * * * *', '2026-03-01T00:00:00.000Z', '2026-03-01T00:00:00Z', '2026-03-01T00:15:00Z'],
    ['*/15 * * * *', '2026-02-28T23:59:00.000Z', '2026-02-28T23:45:00Z', '2026-03-01T00:00:00Z'],
    ['0 3 * * 1', '2026-03-03T12:00:00.000Z', '2026-03-02T03:00:00Z', '2026-03-09T03:00:00Z'],
    ['0 0 29 2 *', '2026-03-01T00:00:00.000Z', '2024-02-29T00:00:00Z', '2028-02-29T00:00:00Z'],
    ['0 0 1 1 *', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z'],
    // Clock changes of other time zones have no effect.
    ['30 2 * * *', '2026-03-29T03:00:00.000Z', '2026-03-29T02:30:00Z', '2026-03-30T02:30:00Z'],
    ['30 2 * * *', '2026-10-25T02:29:59.999Z', '2026-10-24T02:30:00Z', '2026-10-25T02:30:00Z'],
    ['30 1 * * *', '2026-10-25T01:45:00.000Z', '2026-10-25T01:30:00Z', '2026-10-26T01:30:00Z'],
  ])('%s at %s: the latest is %s, the next %s', (cron, now, latest, next) => {
    expect(latestSlot(cron, new Date(now))).toBe(latest);
    expect(nextSlot(cron, new Date(now))).toBe(next);
  });

  it.each(['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Pacific/Apia'])(
    'are those of UTC in %s, each once, through both days of clock changes there',
    (zone) => {
      vi.stubEnv('TZ', zone);
      const days = ['2026-03-08', '2026-03-29', '2026-04-05', '2026-10-04', '2026-10-25', '2026-11-01'];
      for (const day of days) {
        const start = Date.parse(`${day}T00:00:00Z`);
        const half = (step: number) => new Date(start + step * 1_800_000);
        const found = Array.from({ length: 48 }, (_, step) => latestSlot('*/30 * * * *', half(step)));
        expect(found).toEqual(found.map((_, step) => `${half(step).toISOString().slice(0, 19)}Z`));
        expect(nextSlots('30 2 * * *', half(0), 2)).toEqual([
          `${day}T02:30:00Z`,
          `${new Date(start + 86_400_000).toISOString().slice(0, 10)}T02:30:00Z`,
        ]);
      }
      vi.unstubAllEnvs();
    },
  );

  it('are listed from the first one after now', () => {
    const now = new Date('2026-03-01T10:17:00Z');
    expect(nextSlots('40 5,15,17 * * *', now, 4)).toEqual([
      '2026-03-01T15:40:00Z',
      '2026-03-01T17:40:00Z',
      '2026-03-02T05:40:00Z',
      '2026-03-02T15:40:00Z',
    ]);
  });

  it('are the same for every worker from one slot to the next, and never in the future', () => {
    const schedules = fc.constantFrom(
      '* * * * *',
      '17 * * * *',
      '*/7 * * * *',
      '5 4 * * *',
      '0 0 1 * *',
      '0 12 * * 0',
    );
    const instants = fc.date({
      min: new Date('2020-01-01T00:00:00Z'),
      max: new Date('2030-01-01T00:00:00Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(schedules, instants, (cron, now) => {
        const latest = new Date(latestSlot(cron, now));
        const next = new Date(nextSlot(cron, now));
        expect(latest.getTime()).toBeLessThanOrEqual(now.getTime());
        expect(next.getTime()).toBeGreaterThan(now.getTime());
        expect(latestSlot(cron, latest)).toBe(latestSlot(cron, now));
        expect(latestSlot(cron, new Date(next.getTime() - 1))).toBe(latestSlot(cron, now));
        expect(nextSlot(cron, latest)).toBe(nextSlot(cron, now));
      }),
    );
  });

  it('give each job a unique id, of characters that the queue accepts', () => {
    const lineage = '0c1d8b6e-9a6f-4a0e-8b57-3f1f6f0b7a11';
    const attempt = { schedule: 'hetzner', slot: '2026-03-01T10:17:00Z', attempt: 2 };
    expect(jobId(attempt, lineage)).toBe('hetzner-2026-03-01T10-17-00Z-2-0c1d8b6e');
    expect(jobId({ ...attempt, schedule: 'a-1' }, lineage)).not.toContain(':');
  });
});
