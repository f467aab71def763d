/** Returns the closest candidate as a question, e.g. `; did you mean "token"?`; empty if none is close. */
export function didYouMean(text: string, candidates: readonly string[]): string {
  const most = Math.max(1, Math.floor(text.length / 3));
  const [best] = candidates
    .map((candidate) => ({ candidate, edits: editsBetween(text.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ edits }) => edits <= most)
    .sort((one, other) => one.edits - other.edits);
  return best === undefined ? '' : `; did you mean "${best.candidate}"?`;
}

function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++)
      next.push(
        Math.min((row[j] ?? 0) + (letter === to[j] ? 0 : 1), (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1),
      );
    row = next;
  }
  return row.at(-1) ?? 0;
}
