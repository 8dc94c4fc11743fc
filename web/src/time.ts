const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const dateOnly = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

export const formatDateTime = (at: string) => dateTime.format(new Date(at));
export const formatDate = (at: string) => dateOnly.format(new Date(at));
export const formatClock = (at: string) => clock.format(new Date(at));

/** "3 minutes ago"; past a week the date itself says more. */
export function formatAgo(at: string, now = Date.now()): string {
  const seconds = Math.round((new Date(at).getTime() - now) / 1000);
  const size = Math.abs(seconds);
  if (size < 45) return 'just now';
  if (size < 3600) return relative.format(Math.round(seconds / 60), 'minute');
  if (size < 86_400) return relative.format(Math.round(seconds / 3600), 'hour');
  if (size < 7 * 86_400) return relative.format(Math.round(seconds / 86_400), 'day');
  return formatDate(at);
}

export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

/** Days that are left, rounded up, so that the last hours read "1 day". */
export function daysLeft(until: string, now: number): string {
  const days = Math.max(1, Math.ceil((Date.parse(until) - now) / 86_400_000));
  return days === 1 ? '1 day' : `${days} days`;
}

/** `1.4 MB`: bytes in the largest unit that fits. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** power;
  return `${value.toFixed(power === 0 || value >= 100 ? 0 : 1)} ${units[power]}`;
}

/** `16 ms` from microseconds: two or three digits, for bounds of a scale. */
export function formatMicros(micros: number): string {
  const [value, unit] =
    micros < 1000 ? [micros, 'µs'] : micros < 1_000_000 ? [micros / 1000, 'ms'] : [micros / 1_000_000, 's'];
  return `${value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} ${unit}`;
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `1.2M`: an estimate has no more digits than it knows. */
export const formatTokens = (tokens: number) => compact.format(tokens);
