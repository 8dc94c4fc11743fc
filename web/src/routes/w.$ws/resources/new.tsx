import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { useCreateResource } from '../../../api/resources';
import { sourcesQuery } from '../../../api/sources';
import { NewPublished } from '../../../components/published-page';
import { ResourceEditor } from '../../../components/resource-editor';
import { useSession } from '../../../session';

export const Route = createFileRoute('/w/$ws/resources/new')({
  component: NewResourcePage,
});

function NewResourcePage() {
  const { workspace } = useSession();
  const sources = useQuery(sourcesQuery(workspace.slug)).data?.items ?? [];
  return (
    <NewPublished kind="resource" create={useCreateResource(workspace.slug)}>
      {(editor) => <ResourceEditor sources={sources} {...editor} />}
    </NewPublished>
  );
}
