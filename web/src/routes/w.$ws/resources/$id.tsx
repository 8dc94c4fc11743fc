import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { resourceQuery, useDeleteResource, useRewriteResource } from '../../../api/resources';
import { sourcesQuery } from '../../../api/sources';
import { PublishedPage } from '../../../components/published-page';
import { ResourceEditor } from '../../../components/resource-editor';
import { useSession } from '../../../session';
import { ShowAsYaml } from '../-show-as-yaml';

export const Route = createFileRoute('/w/$ws/resources/$id')({
  component: ResourcePage,
});

function ResourcePage() {
  const { workspace } = useSession();
  const { id } = Route.useParams();
  const sources = useQuery(sourcesQuery(workspace.slug)).data?.items ?? [];
  return (
    <PublishedPage
      kind="resource"
      query={useQuery(resourceQuery(workspace.slug, id))}
      rewrite={useRewriteResource(workspace.slug, id)}
      remove={useDeleteResource(workspace.slug)}
      actions={(resource) => <ShowAsYaml kind="resource" of={resource.uri} />}
    >
      {(resource, editor) => <ResourceEditor initial={resource} sources={sources} {...editor} />}
    </PublishedPage>
  );
}
