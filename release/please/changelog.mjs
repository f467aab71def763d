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
    const notes = await new DefaultChangelogNotes().buildNotes(commits, options);
    // Its heading is below, with the written part.
    const list = notes.replace(/^##? .*\n*/, '').trim();
    // release-please takes notes of one line for no release. Without a feature, a fix or a breaking change there is none.
    if (list === '') return '';
    const parts = [
      `## ${options.version} (${date})`,
      unreleased(parsedContent),
      '### Commits',
      list.replaceAll(/^### /gm, '#### ').replaceAll(/\n{3,}/g, '\n\n'),
    ];
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
