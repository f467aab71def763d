import { expect, it } from 'vitest';
import { changeFeed } from '../../../src/features/console/routes/events.ts';

it('a change is noticed although a check began before it and ends after it', async () => {
  let stored = 'before';
  const answers = Promise.withResolvers<void>();
  const noticed: string[] = [];
  const feed = changeFeed(
    async () => {
      const read = stored;
      await answers.promise;
      return read;
    },
    () => noticed.push(stored),
  );
  const earlier = feed.mark();
  stored = 'after';
  const changed = feed.changed();
  answers.resolve();
  await Promise.all([earlier, changed]);
  expect(await feed.mark()).toBe('after');
  expect(noticed).toHaveLength(2);
});
