import { Button, Skeleton, Title } from '@mantine/core';
import { IconArrowLeft, IconCloudOff, IconLock, IconMapOff, IconShieldLock } from '@tabler/icons-react';
import type { UseQueryResult } from '@tanstack/react-query';
import { Link, type LinkProps } from '@tanstack/react-router';
import { type ReactNode, useEffect, useId, useRef } from 'react';
import { ApiError } from '../api/http';
import { factorPath } from '../api/security';
import { HelpLink } from './help-link';
import classes from './page.module.css';

// The first page of a visit keeps the browser's own focus; after that each new page takes it to its heading.
let visited = false;

/** One page: sets the document's title and takes the focus to the heading after a navigation. */
export function Page({
  title,
  documentTitle,
  lede,
  help,
  back,
  beside,
  actions,
  children,
}: {
  title: string;
  documentTitle?: string;
  lede?: ReactNode;
  /** The page of the docs that explains this one, with a heading: `console#sources`. */
  help?: string;
  back?: { label: string } & Pick<LinkProps, 'to' | 'params' | 'search'>;
  beside?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${documentTitle ?? title} · Portolan`;
  }, [title, documentTitle]);
  useEffect(() => {
    if (visited) heading.current?.focus({ preventScroll: true });
    visited = true;
  }, []);
  return (
    <div className={classes.page}>
      <header className={classes.header}>
        <div className={classes.heading}>
          {back && (
            <Link to={back.to} params={back.params} search={back.search} className={classes.crumb}>
              <IconArrowLeft size={15} aria-hidden /> {back.label}
            </Link>
          )}
          <div className={classes.titleRow}>
            <Title order={1} ref={heading} tabIndex={-1} className={classes.title}>
              {title}
            </Title>
            {beside}
          </div>
          {(lede || help) && (
            <p className={classes.lede}>
              {lede} {help && <HelpLink to={help}>Learn more</HelpLink>}
            </p>
          )}
        </div>
        {actions && <div className={classes.actions}>{actions}</div>}
      </header>
      <div className={classes.stack}>{children}</div>
    </div>
  );
}

/** A framed part of a page. `flush` lets a table touch the frame. */
export function Panel({
  title,
  note,
  aside,
  flush,
  children,
}: {
  title?: ReactNode;
  note?: ReactNode;
  aside?: ReactNode;
  flush?: boolean;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <section className={classes.panel} aria-labelledby={title ? id : undefined}>
      {(title || aside) && (
        <div className={classes.panelHead}>
          {title && (
            <Title order={2} id={id} className={classes.panelTitle} fz="1.0625rem">
              {title}
            </Title>
          )}
          {aside}
          {note && <p className={classes.panelNote}>{note}</p>}
        </div>
      )}
      <div className={flush ? classes.flush : classes.panelBody}>{children}</div>
    </section>
  );
}

export function Facts({ items }: { items: [string, ReactNode][] }) {
  return (
    <dl className={classes.facts}>
      {items.map(([name, value]) => (
        <FactPair key={name} name={name} value={value} />
      ))}
    </dl>
  );
}

function FactPair({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

export function Empty({
  icon,
  title,
  children,
  actions,
  page,
}: {
  icon: ReactNode;
  title: string;
  /** The state is the whole page, so its title is the page's heading. */
  page?: boolean;
  children?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <div className={classes.empty}>
      <div className={classes.emptyIcon} aria-hidden>
        {icon}
      </div>
      {page ? (
        <h1 className={classes.emptyTitle}>{title}</h1>
      ) : (
        <h2 className={classes.emptyTitle}>{title}</h2>
      )}
      {children && <p className={classes.emptyText}>{children}</p>}
      {actions && <div className={classes.emptyActions}>{actions}</div>}
    </div>
  );
}

/** Skeleton lines; a screen reader hears one word. */
export function Loading({ lines = 4 }: { lines?: number }) {
  return (
    <div className={classes.loading} role="status">
      <span className="visually-hidden">Loading…</span>
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines have no identity
        <Skeleton key={line} height={16} width={`${92 - ((line * 17) % 40)}%`} radius="sm" />
      ))}
    </div>
  );
}

/** Shows a failed query: forbidden, not found, or failed with a button that retries. */
export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  const status = error instanceof ApiError ? error.status : -1;
  const message = error instanceof Error ? error.message : 'Something went wrong on this page.';
  if (status === 401) return <Loading />;
  const way = factorPath(error);
  if (way) {
    return (
      <div role="alert">
        <Empty
          icon={<IconShieldLock size={24} />}
          title="One more step"
          actions={
            <Button component="a" href={way}>
              Continue
            </Button>
          }
        >
          {message}
        </Empty>
      </div>
    );
  }
  if (status === 403) {
    return (
      <div role="alert">
        <Empty icon={<IconLock size={24} />} title="You don’t have access">
          {message}
        </Empty>
      </div>
    );
  }
  if (status === 404) {
    return (
      <div role="alert">
        <Empty icon={<IconMapOff size={24} />} title="Not found">
          {message}
        </Empty>
      </div>
    );
  }
  return (
    <div role="alert">
      <Empty
        icon={<IconCloudOff size={24} />}
        title={status === 0 ? 'No connection' : 'This could not be loaded'}
        actions={
          retry && (
            <Button variant="default" onClick={retry}>
              Try again
            </Button>
          )
        }
      >
        {message}
      </Empty>
    </div>
  );
}

/** Loading, error or the data of one query. */
export function Loaded<T>({
  query,
  lines,
  children,
}: {
  query: Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch'>;
  lines?: number;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <Failed error={query.error} retry={() => void query.refetch()} />;
  return <Loading lines={lines} />;
}
