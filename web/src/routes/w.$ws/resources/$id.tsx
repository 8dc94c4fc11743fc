import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import {
  resourceQuery,
  useCreateResource,
  useDeleteResource,
  useRewriteResource,
} from '../../../api/resources';
import { type Source, sourcesQuery } from '../../../api/sources';
import { NewPublished, PublishedPage } from '../../../components/published-page';
import { ResourceEditor } from '../../../components/resource-editor';
import { useSession } from '../../../session';

function useSources(): Source[] {
  const { workspace } = useSession();
  return useQuery(sourcesQuery(workspace.slug)).data?.items ?? [];
}

export function NewResourcePage() {
  const { workspace } = useSession();
  const sources = useSources();
  return (
    <NewPublished kind="resource" create={useCreateResource(workspace.slug)}>
      {(editor) => <ResourceEditor sources={sources} {...editor} />}
    </NewPublished>
  );
}

export function ResourcePage() {
  const { workspace } = useSession();
  const { id } = useParams({ from: '/w/$ws/resources/$id' });
  const sources = useSources();
  return (
    <PublishedPage
      kind="resource"
      query={useQuery(resourceQuery(workspace.slug, id))}
      rewrite={useRewriteResource(workspace.slug, id)}
      remove={useDeleteResource(workspace.slug)}
    >
      {(resource, editor) => <ResourceEditor initial={resource} sources={sources} {...editor} />}
    </PublishedPage>
  );
}
