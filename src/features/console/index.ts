/** The console: pages of the operators' server for a browser, and the API behind them. See docs/console.md. */
import type { Feature } from '../../app/feature.ts';

export const consoleFeature: Feature = {
  name: 'console',
  operations: async (context) => (await import('./open.ts')).openConsole(context),
};
