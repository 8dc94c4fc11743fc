import { Switch } from '@mantine/core';
import { IconFileText, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ResourceSummary, resourcesQuery, useSwitchResource } from '../api/resources';
import { Ago } from '../components/ago';
import { LinkButton } from '../components/link-button';
import { Empty, Loaded, Page, Panel } from '../components/page';
import { RecentlyDeleted } from '../components/recently-deleted';
import { cell, Table } from '../components/table';
import { toastFailed } from '../components/toast';
import { useMay, useSession } from '../session';

const bodies: Record<ResourceSummary['body'], string> = {
  text: 'Text',
  file: 'File',
  http: 'API',
  upstream: 'Upstream',
};

export function ResourcesPage() {
  const { workspace } = useSession();
  const params = { ws: workspace.slug };
  const resources = useQuery(resourcesQuery(workspace.slug));
  const switchResource = useSwitchResource(workspace.slug);
  const edits = useMay('edit_registry');
  const create = edits && (
    <LinkButton to="/w/$ws/resources/new" params={params} leftSection={<IconPlus size={17} aria-hidden />}>
      New resource
    </LinkButton>
  );
  return (
    <Page
      title="Resources"
      lede="A resource is content that clients read by its URI: text, a file, or an API response. Add resources to servers to publish them."
      actions={resources.data && resources.data.items.length > 0 && create}
    >
      <RecentlyDeleted kind="resource" />
      <Panel flush>
        <Loaded query={resources}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty icon={<IconFileText size={24} />} title="No resources yet" actions={create}>
                Give models something to read: a guide, a file, or records of an API.
              </Empty>
            ) : (
              <Table
                label="Resources"
                head={
                  <>
                    <th>Name</th>
                    <th>Content</th>
                    <th>Servers</th>
                    <th data-align="right">Changed</th>
                    <th>Enabled</th>
                  </>
                }
              >
                {items.map((resource) => (
                  <tr key={resource.id}>
                    <td data-wide>
                      <Link
                        to="/w/$ws/resources/$id"
                        params={{ ...params, id: resource.id }}
                        className={`plain ${cell.main}`}
                      >
                        {resource.title || resource.name}
                      </Link>
                      <div className={`${cell.sub} ${cell.clamp}`}>
                        <code>{resource.uri}</code>
                      </div>
                    </td>
                    <td data-label="Content">
                      {[bodies[resource.body], resource.source_name ?? resource.mime_type]
                        .filter(Boolean)
                        .join(', ')}
                    </td>
                    <td data-label="Servers">{resource.used_by_servers.join(', ') || '–'}</td>
                    <td data-align="right" data-shrink>
                      <Ago at={resource.updated_at} />
                    </td>
                    <td data-shrink>
                      <Switch
                        aria-label={`Enabled: ${resource.name}`}
                        checked={resource.enabled}
                        disabled={!edits || switchResource.isPending}
                        onChange={(event) =>
                          switchResource.mutate(
                            { id: resource.id, enabled: event.currentTarget.checked },
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
