/** Reads an option that is a whole number. It ends the process with the remedy for any other text. @param of what divides it */
export function count(name: string, text: string, least = 1, of = 1): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value % of === 0) return value;
  const multiple = of === 1 ? '' : `, a multiple of ${of}`;
  process.stderr.write(`--${name} must be a whole number from ${least}${multiple}; it is ${text}\n`);
  process.exit(2);
}
