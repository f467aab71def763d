/** Stores drafts of texts. A draft survives navigation, a reload and a new sign-in in the same tab. */
import { useState } from 'preact/hooks';

/** Returns the text of a draft, and a function that sets it. @param key identifies the draft */
export function useDraft(key: string): readonly [text: string, set: (text: string) => void] {
  const [draft, setDraft] = useState(() => ({ key, text: stored(key) }));
  const { text } = draft.key === key ? draft : { text: stored(key) };
  const set = (next: string) => {
    setDraft({ key, text: next });
    if (next === '') sessionStorage.removeItem(nameOf(key));
    else sessionStorage.setItem(nameOf(key), next);
  };
  return [text, set];
}

const nameOf = (key: string) => `draft ${key}`;
const stored = (key: string) => sessionStorage.getItem(nameOf(key)) ?? '';
