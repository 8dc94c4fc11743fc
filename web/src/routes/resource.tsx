import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { resourceQuery, useCreateResource, useDeleteResource, useRewriteResource } from '../api/resources';
import { NewPublished, PublishedPage } from '../components/published-page';
import { ResourceEditor } from '../components/resource-editor';
import { useSession } from '../session';

export function NewResourcePage() {
  const { workspace } = useSession();
  return (
    <NewPublished kind="resource" create={useCreateResource(workspace.slug)}>
      {(editor) => <ResourceEditor {...editor} />}
    </NewPublished>
  );
}

export function ResourcePage() {
  const { workspace } = useSession();
  const { id } = useParams({ from: '/w/$ws/resources/$id' });
  return (
    <PublishedPage
      kind="resource"
      query={useQuery(resourceQuery(workspace.slug, id))}
      rewrite={useRewriteResource(workspace.slug, id)}
      remove={useDeleteResource(workspace.slug)}
    >
      {(resource, editor) => <ResourceEditor initial={resource} {...editor} />}
    </PublishedPage>
  );
}
