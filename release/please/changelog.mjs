/**
 * The text of a release: the section `Unreleased` of CHANGELOG.md, which each change writes for operators and users, and then
 * the conventional commits.
 */
import { DefaultChangelogNotes } from 'release-please/build/src/changelog-notes/default.js';
import { ManifestPlugin } from 'release-please/build/src/plugin.js';

const UNRELEASED = /^## Unreleased\n(.*?)(?=^## |$(?![\s\S]))/ms;

/** @returns the written part of the next release, without its heading */
export function unreleased(changelog) {
  const found = UNRELEASED.exec(changelog);
  if (!found) throw new Error('CHANGELOG.md has no section "## Unreleased"; add it above the newest release');
  return found[1].trim();
}

/** @returns the changelog with an empty section `Unreleased` above the section of the release */
export function withRelease(changelog, entry) {
  return changelog
    .replace(UNRELEASED, () => `## Unreleased\n\n${entry.trim()}\n\n`)
    .trimEnd()
    .concat('\n');
}

/** Notes for `changelog-type: operators`. */
export class OperatorNotes {
  #github;

  constructor(github) {
    this.#github = github;
  }

  async buildNotes(commits, options) {
    const { parsedContent } = await this.#github.getFileContentsOnBranch(
      'CHANGELOG.md',
      options.targetBranch,
    );
    const date = new Date().toISOString().slice(0, 10);
    const written = unreleased(parsedContent);
    const list = await new DefaultChangelogNotes({
      // The heading is below, with the written part.
      headerPartial: '',
    }).buildNotes(commits, options);
    const parts = [`## ${options.version} (${date})`, written];
    if (list !== '') parts.push('### Commits', list.replaceAll(/^### /gm, '#### '));
    return parts.filter((part) => part !== '').join('\n\n');
  }
}

/** Replaces release-please's update of CHANGELOG.md, which would keep the written part under `Unreleased`. */
export class OperatorChangelog extends ManifestPlugin {
  async run(candidates) {
    for (const { pullRequest } of candidates)
      for (const update of pullRequest.updates) {
        const entry = update.updater.changelogEntry;
        if (entry !== undefined) update.updater = { updateContent: (content) => withRelease(content, entry) };
      }
    return candidates;
  }
}
