import { Switch } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import type { UseMutationResult, UseQueryResult } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { useRecentlyDeleted } from '../api/trash';
import { useMay, useSession } from '../session';
import { Ago } from './ago';
import { LinkButton } from './link-button';
import { Empty, Loaded, Page, Panel } from './page';
import { type PublishedKind, published } from './published';
import { RecentlyDeleted } from './recently-deleted';
import { cell, Table } from './table';
import { toastFailed } from './toast';

/** The fields of every row; the caller renders the others. */
interface Listed {
  id: string;
  name: string;
  enabled: boolean;
  used_by_servers: string[];
  updated_at: string;
}

/** The page of all prompts, or of all resources: each with a switch, and those deleted lately. */
export function PublishedList<Item extends Listed>({
  kind,
  lede,
  icon,
  invitation,
  query,
  enable,
  deleted,
  heading,
  title,
  detail,
}: {
  kind: PublishedKind;
  lede: string;
  icon: ReactNode;
  /** The next step, for an empty list. */
  invitation: string;
  query: UseQueryResult<{ items: Item[] }>;
  enable: UseMutationResult<unknown, Error, { id: string; enabled: boolean }>;
  deleted: ReturnType<typeof useRecentlyDeleted>;
  /** The head of the column of `detail`. */
  heading: string;
  /** The link to a thing, and the line under it. */
  title: (item: Item) => { name: string; sub: ReactNode };
  detail: (item: Item) => ReactNode;
}) {
  const { workspace } = useSession();
  const params = { ws: workspace.slug };
  const edits = useMay('edit_registry');
  const { one, many, plural, to } = published[kind];
  const create = edits && (
    <LinkButton to={to.create} params={params} leftSection={<IconPlus size={17} aria-hidden />}>
      New {one}
    </LinkButton>
  );
  return (
    <Page title={many} lede={lede} actions={query.data && query.data.items.length > 0 && create}>
      <RecentlyDeleted deleted={deleted} />
      <Panel flush>
        <Loaded query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty icon={icon} title={`No ${plural} yet`} actions={create}>
                {invitation}
              </Empty>
            ) : (
              <Table
                label={many}
                head={
                  <>
                    <th>Name</th>
                    <th>{heading}</th>
                    <th>Servers</th>
                    <th data-align="right">Changed</th>
                    <th>Enabled</th>
                  </>
                }
              >
                {items.map((item) => (
                  <tr key={item.id}>
                    <td data-wide>
                      <Link to={to.page} params={{ ...params, id: item.id }} className={`plain ${cell.main}`}>
                        {title(item).name}
                      </Link>
                      <div className={`${cell.sub} ${cell.clamp}`}>{title(item).sub}</div>
                    </td>
                    <td data-label={heading}>{detail(item)}</td>
                    <td data-label="Servers">{item.used_by_servers.join(', ') || '–'}</td>
                    <td data-align="right" data-shrink>
                      <Ago at={item.updated_at} />
                    </td>
                    <td data-shrink>
                      <Switch
                        aria-label={`Enabled: ${item.name}`}
                        checked={item.enabled}
                        disabled={!edits || enable.isPending}
                        onChange={(event) =>
                          enable.mutate(
                            { id: item.id, enabled: event.currentTarget.checked },
                            { onError: toastFailed },
                          )
                        }
                      />
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
      </Panel>
    </Page>
  );
}
