/** What a process is asked by the one that started it: for its metrics. */
export const METRICS = 'metrics';
