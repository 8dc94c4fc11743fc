import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import {
  type Resource,
  resourceQuery,
  useCreateResource,
  useDeleteResource,
  useRewriteResource,
} from '../api/resources';
import { DeletePanel } from '../components/delete-panel';
import { Loaded, Page } from '../components/page';
import { ResourceEditor } from '../components/resource-editor';
import { Restricted } from '../components/restricted';
import { toastAction, toastDone } from '../components/toast';
import { useMay, useSession } from '../session';

const useBack = () => {
  const { workspace } = useSession();
  return { label: 'Resources', to: '/w/$ws/resources', params: { ws: workspace.slug } } as const;
};

export function NewResourcePage() {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const create = useCreateResource(workspace.slug);
  const back = useBack();
  return (
    <Restricted needs="edit_registry" title="New resource" back={back}>
      <Page title="New resource" back={back}>
        <ResourceEditor
          submitLabel="Create resource"
          pending={create.isPending}
          error={create.error}
          onSubmit={(definition) =>
            create.mutate(definition, {
              onSuccess: () => {
                toastAction(
                  'Resource created.',
                  'Add to a server',
                  () => void navigate({ to: '/w/$ws/servers', params: { ws: workspace.slug } }),
                );
                void navigate({
                  to: '/w/$ws/resources',
                  params: { ws: workspace.slug },
                  ignoreBlocker: true,
                });
              },
            })
          }
        />
      </Page>
    </Restricted>
  );
}

export function ResourcePage() {
  const { workspace } = useSession();
  const { id } = useParams({ from: '/w/$ws/resources/$id' });
  const resource = useQuery(resourceQuery(workspace.slug, id));
  const back = useBack();
  return (
    <Page title={resource.data?.name ?? 'Resource'} back={back} lede={resource.data?.title}>
      <Loaded query={resource} lines={8}>
        {(data) => <EditResource key={data.updated_at} resource={data} />}
      </Loaded>
    </Page>
  );
}

function EditResource({ resource }: { resource: Resource }) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const edits = useMay('edit_registry');
  const rewrite = useRewriteResource(workspace.slug, resource.id);
  const remove = useDeleteResource(workspace.slug);
  if (resource.source_name) {
    return (
      <Alert color="sea" title={`From ${resource.source_name}`}>
        This resource comes from an upstream server and is edited there. {resource.description}
      </Alert>
    );
  }
  return (
    <>
      <fieldset disabled={!edits} style={{ border: 0, margin: 0, padding: 0, minWidth: 0 }}>
        <ResourceEditor
          initial={resource}
          submitLabel="Save resource"
          pending={rewrite.isPending}
          error={rewrite.error}
          onSubmit={(definition) =>
            rewrite.mutate(definition, {
              onSuccess: () => toastDone('Resource saved. Subscribed clients are notified.'),
            })
          }
        />
      </fieldset>
      {edits && (
        <DeletePanel
          noun="resource"
          name={resource.name}
          note="It is removed from every server. You can restore it from the trash for 30 days."
          busy={remove.isPending}
          error={remove.error}
          act={() =>
            remove.mutate(resource.id, {
              onSuccess: () => {
                void navigate({
                  to: '/w/$ws/resources',
                  params: { ws: workspace.slug },
                  ignoreBlocker: true,
                });
              },
            })
          }
        >
          Servers stop offering it immediately. You can restore it from the trash for 30 days.
        </DeletePanel>
      )}
    </>
  );
}
