/** Counts the turns of the event loop until it is disposed. */
export function countTurns(): { readonly turns: number } & Disposable {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  return {
    get turns() {
      return turns;
    },
    [Symbol.dispose]() {
      isOver = true;
    },
  };
}
