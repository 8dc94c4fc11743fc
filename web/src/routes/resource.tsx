import { Alert, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import {
  type Resource,
  resourceQuery,
  useCreateResource,
  useDeleteResource,
  useRestoreResource,
  useRewriteResource,
} from '../api/resources';
import { Loaded, Page, Panel } from '../components/page';
import { ResourceEditor } from '../components/resource-editor';
import { toastDone, toastFailed, toastUndo } from '../components/toast';
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
    <Page title="New resource" back={back}>
      <ResourceEditor
        submitLabel="Create resource"
        pending={create.isPending}
        error={create.error}
        onSubmit={(definition) =>
          create.mutate(definition, {
            onSuccess: (resource) => {
              toastDone(`${resource.name} was created. Choose it on the pages of your servers.`);
              void navigate({ to: '/w/$ws/resources', params: { ws: workspace.slug } });
            },
          })
        }
      />
    </Page>
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
  const restore = useRestoreResource(workspace.slug);
  if (resource.source_name) {
    return (
      <Alert color="sea" title={`From ${resource.source_name}`}>
        This resource comes from an upstream server, which also answers for it. {resource.description}
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
              onSuccess: () => toastDone('The resource was saved. Clients that subscribed to it are told.'),
            })
          }
        />
      </fieldset>
      {edits && (
        <Panel
          title="Delete this resource"
          note="Servers offer it no more. You can undo this for ten minutes."
        >
          <Button
            color="red"
            variant="light"
            loading={remove.isPending}
            onClick={() =>
              remove.mutate(resource.id, {
                onSuccess: () => {
                  void navigate({ to: '/w/$ws/resources', params: { ws: workspace.slug } });
                  toastUndo(
                    `“${resource.name}” was deleted.`,
                    () => restore.mutateAsync(resource.id),
                    `“${resource.name}” is back.`,
                  );
                },
                onError: toastFailed,
              })
            }
          >
            Delete resource
          </Button>
        </Panel>
      )}
    </>
  );
}
