/** The variable of an adapter: `price-list`, `regionName` → `PRICE_LIST_REGION_NAME`. */
export function environmentKey(adapterId: string, name: string): string {
  const words = name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`);
  return `${adapterId}_${words}`.replaceAll('-', '_').toUpperCase();
}
