import { IconAnchor, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { serversQuery } from '../api/servers';
import { Ago } from '../components/ago';
import { ServerStatus } from '../components/badges';
import { CopyLine } from '../components/copy';
import { LinkButton } from '../components/link-button';
import { Empty, Loaded, Page, Panel } from '../components/page';
import { cell, Table } from '../components/table';
import { useMay, useSession } from '../session';

export function ServersPage() {
  const { workspace } = useSession();
  const params = { ws: workspace.slug };
  const servers = useQuery(serversQuery(workspace.slug));
  const edits = useMay('edit_registry');
  const create = edits && (
    <LinkButton to="/w/$ws/servers/new" params={params} leftSection={<IconPlus size={17} aria-hidden />}>
      New server
    </LinkButton>
  );
  return (
    <Page
      title="Servers"
      lede="A server is one URL that an AI client connects to, with the tools that you choose for it."
      actions={servers.data && servers.data.items.length > 0 && create}
    >
      <Panel flush>
        <Loaded query={servers}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty icon={<IconAnchor size={24} />} title="No server yet" actions={create}>
                Choose some tools and publish them. Claude, ChatGPT, Cursor, VS Code and any other MCP client
                can connect then.
              </Empty>
            ) : (
              <Table
                label="Servers"
                head={
                  <>
                    <th>Name</th>
                    <th>URL</th>
                    <th>Status</th>
                    <th data-align="right">Tools</th>
                    <th data-align="right">Changed</th>
                  </>
                }
              >
                {items.map((server) => (
                  <tr key={server.id}>
                    <td data-wide>
                      <Link
                        to="/w/$ws/servers/$id"
                        params={{ ...params, id: server.id }}
                        className={`plain ${cell.main}`}
                      >
                        {server.name}
                      </Link>
                      {server.description && (
                        <div className={`${cell.sub} ${cell.clamp}`}>{server.description}</div>
                      )}
                    </td>
                    <td data-wide>
                      <CopyLine text={server.url} label={`URL of ${server.name}`} />
                    </td>
                    <td>
                      <ServerStatus status={server.status} />
                    </td>
                    <td data-align="right" data-label="Tools">
                      {server.tool_count}
                    </td>
                    <td data-align="right" data-shrink>
                      <Ago at={server.updated_at} />
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
