/** Folders of other formats of the disk copy, which another release has written. */
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Raise it whenever another release would misread the file: each format has a folder of its own. */
const COPY_FORMAT = 1;

/** Where the copy lies. @param folder as SNAPSHOT_DIR names it */
export const copyFolder = (folder: string): string => join(folder, `fleetbook-copy-${COPY_FORMAT}`);

/** A release that runs beside this one, during a rolling update, writes every second. */
const ABANDONED_MS = 86_400_000;

/** Removes copies in other formats that nobody has written for a day. Others are left alone, and never read. */
export function removeOtherFormats(folder: string): void {
  for (const entry of readdirSync(folder)) {
    const match = /^fleetbook-copy-(\d+)$/.exec(entry);
    if (!match || Number(match[1]) === COPY_FORMAT) continue;
    const path = join(folder, entry);
    if (Date.now() - lastWritten(path) > ABANDONED_MS) rmSync(path, { recursive: true, force: true });
  }
}

function lastWritten(path: string): number {
  const files = readdirSync(path).map((name) => join(path, name));
  return Math.max(...[path, ...files].map((each) => statSync(each, { throwIfNoEntry: false })?.mtimeMs ?? 0));
}
