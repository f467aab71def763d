import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { startServers } from '../../../src/app/processes/servers.ts';
import { readSettings } from '../../../src/config/settings.ts';
import { openStore } from '../../../src/db/connection/connect.ts';
import { Supervisor } from '../../../src/processes/supervisor.ts';
import { until } from '../../support/until.ts';
import { temporaryHome } from '../../support/up.ts';

it('replaces failed servers of `up`: at the same address and, for PostgreSQL, with the same data', async () => {
  await using home = await temporaryHome();
  const logged: { readonly msg: string }[] = [];
  const log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) });
  await using supervisor = new Supervisor({ log, firstDelayMs: 10 });
  const printed: string[] = [];
  const starting = { supervisor, notify: (line: string) => void printed.push(line) };
  const servers = await startServers({ settings: readSettings({}) }, join(home.path, 'sample'), starting);
  expect(printed).toEqual([
    expect.stringMatching(/^PostgreSQL on port \d+, data in /),
    expect.stringMatching(/^Redis \(.* \d+\.\d+\.\d+\) on port \d+$/),
  ]);
  expect(servers.queueRedisUrl).toBe(servers.cacheRedisUrl);
  {
    await using before = openStore({ url: servers.databaseUrl, role: 'owner', connections: 1 });
    await before.sql`create table kept (id int)`;
  }
  for (const name of ['PostgreSQL', 'Redis']) {
    process.kill(supervisor.pidOf(name) ?? 0, 'SIGKILL');
    await until(() => logged.some(({ msg }) => msg === `${name} runs again`));
    expect(logged.map(({ msg }) => msg)).toContain(
      `${name} was ended by SIGKILL; the supervisor restarts it`,
    );
  }
  await using after = openStore({ url: servers.databaseUrl, role: 'owner', connections: 1 });
  expect(await after.sql`select from kept`).toHaveLength(0);
});
