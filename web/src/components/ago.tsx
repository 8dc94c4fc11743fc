import { formatAgo, formatDateTime } from '../time';

/** "3 minutes ago", with the exact time for those who ask. */
export function Ago({ at }: { at: string }) {
  return (
    <time dateTime={at} title={formatDateTime(at)}>
      {formatAgo(at)}
    </time>
  );
}
