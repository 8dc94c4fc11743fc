import { IconFileImport, IconPlugConnected, IconPlus, IconServer2 } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Link } from '@tanstack/react-router';
import { kindName, sourcesQuery } from '../../../api/sources';
import { useRecentlyDeleted } from '../../../api/trash';
import { Ago } from '../../../components/ago';
import { Tag } from '../../../components/badges';
import { SourceCredentialStatus } from '../../../components/credential-state';
import { LinkButton } from '../../../components/link-button';
import { Empty, Loaded, Page, Panel } from '../../../components/page';
import { RecentlyDeleted } from '../../../components/recently-deleted';
import { cell, Table } from '../../../components/table';
import { useMay, useSession } from '../../../session';

export const Route = createFileRoute('/w/$ws/sources/')({
  component: SourcesPage,
});

function SourcesPage() {
  const { workspace } = useSession();
  const params = { ws: workspace.slug };
  const sources = useQuery(sourcesQuery(workspace.slug));
  const edits = useMay('edit_registry');
  const deleted = useRecentlyDeleted(workspace.slug, 'source', edits);
  const actions = edits && (
    <>
      <LinkButton
        to="/w/$ws/sources/new"
        params={params}
        variant="default"
        leftSection={<IconPlus size={17} aria-hidden />}
      >
        Add tools manually
      </LinkButton>
      <LinkButton
        to="/w/$ws/sources/upstream"
        params={params}
        variant="default"
        leftSection={<IconServer2 size={17} aria-hidden />}
      >
        Add an MCP server
      </LinkButton>
      <LinkButton
        to="/w/$ws/sources/attach"
        params={params}
        variant="default"
        leftSection={<IconPlugConnected size={17} aria-hidden />}
      >
        Attach a private server
      </LinkButton>
      <LinkButton
        to="/w/$ws/sources/import"
        params={params}
        leftSection={<IconFileImport size={17} aria-hidden />}
      >
        Import an API
      </LinkButton>
    </>
  );
  const some = sources.data && sources.data.items.length > 0;
  return (
    <Page
      title="Sources"
      help="console#sources"
      lede="The APIs and MCP servers behind your tools. Each has its own base URL, credential and limits."
      actions={some && actions}
    >
      <RecentlyDeleted deleted={deleted} />
      <Panel flush>
        <Loaded query={sources}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty icon={<IconFileImport size={24} />} title="No sources yet" actions={actions}>
                Import an OpenAPI 3.0 or 3.1 document and every operation becomes a tool. Without a document,
                add tools manually. Or add an existing MCP server.
              </Empty>
            ) : (
              <Table
                label="Sources"
                head={
                  <>
                    <th>Name</th>
                    <th>Kind</th>
                    <th>Credential</th>
                    <th data-align="right">Tools enabled</th>
                    <th data-align="right">Changed</th>
                  </>
                }
              >
                {items.map((source) => (
                  <tr key={source.id}>
                    <td data-wide>
                      <Link
                        to="/w/$ws/sources/$id"
                        params={{ ...params, id: source.id }}
                        className={`plain ${cell.main}`}
                      >
                        {source.name}
                      </Link>
                      <div className={cell.sub}>
                        <code>{source.base_url}</code>
                      </div>
                    </td>
                    <td>
                      <Tag>{kindName(source.kind)}</Tag>
                    </td>
                    <td>
                      <SourceCredentialStatus source={source} />
                    </td>
                    <td data-align="right" data-label="Tools">
                      {source.enabled_tool_count} of {source.tool_count}
                    </td>
                    <td data-align="right" data-shrink>
                      <Ago at={source.updated_at} />
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
