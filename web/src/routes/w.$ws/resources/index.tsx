import { IconFileText } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { type ResourceSummary, resourcesQuery, useSwitchResource } from '../../../api/resources';
import { useRecentlyDeleted } from '../../../api/trash';
import { PublishedList } from '../../../components/published-list';
import { useMay, useSession } from '../../../session';

export const Route = createFileRoute('/w/$ws/resources/')({
  component: ResourcesPage,
});

const bodies: Record<ResourceSummary['body'], string> = {
  text: 'Text',
  file: 'File',
  http: 'API',
  upstream: 'Upstream',
};

function ResourcesPage() {
  const { workspace } = useSession();
  return (
    <PublishedList
      kind="resource"
      lede="A resource is content that clients read by its URI: text, a file, or an API response. Add resources to servers to publish them."
      icon={<IconFileText size={24} />}
      invitation="Give models something to read: a guide, a file, or records of an API."
      query={useQuery(resourcesQuery(workspace.slug))}
      enable={useSwitchResource(workspace.slug)}
      deleted={useRecentlyDeleted(workspace.slug, 'resource', useMay('edit_registry'))}
      heading="Content"
      title={(resource) => ({ name: resource.title || resource.name, sub: <code>{resource.uri}</code> })}
      detail={(resource) =>
        [bodies[resource.body], resource.source_name ?? resource.mime_type].filter(Boolean).join(', ')
      }
    />
  );
}
