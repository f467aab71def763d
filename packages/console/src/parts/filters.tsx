/** Filters of a list. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { DEBOUNCE_MS } from '../lib/data.ts';

interface SearchProps {
  readonly label: string;
  readonly value: string;
  readonly onSearch: (text: string) => void;
}

/** A field that searches while an operator types. */
export function Search({ label, value, onSearch }: SearchProps) {
  const [text, setText] = useState(value);
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => setText(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <label class="field grow">
      <span>{label}</span>
      <input
        type="search"
        value={text}
        data-search
        onInput={(event) => {
          const next = event.currentTarget.value;
          setText(next);
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => onSearch(next.trim()), DEBOUNCE_MS);
        }}
      />
    </label>
  );
}

type Option = readonly [value: string, text: string];

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly Option[];
  readonly onChoose: (value: string) => void;
}

/** A list of options. Adds the current value if it is not an option, e.g. from an old link. */
export function Choice({ label, value, options, onChoose }: ChoiceProps) {
  const isKnown = options.some(([each]) => each === value);
  const shown: readonly Option[] = isKnown ? options : [...options, [value, value]];
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {shown.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Returns an option for each value, after one that selects all. */
export const allOf = (values: readonly string[], all = 'all'): Option[] => [
  ['', all],
  ...values.map((value): Option => [value, value]),
];
