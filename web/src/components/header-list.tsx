import classes from './header-list.module.css';

/** The headers of an HTTP message, in its order. */
export function HeaderList({ label, headers }: { label: string; headers: (readonly [string, string])[] }) {
  return (
    <dl className={classes.headers} aria-label={label}>
      {headers.map(([name, value], place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a header may stand twice
        <div key={place}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
