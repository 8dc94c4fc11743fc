import { useQuery } from '@tanstack/react-query';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { toolQuery, useSetDefinition } from '../../../../api/tools';
import { Loaded, Page } from '../../../../components/page';
import { Restricted } from '../../../../components/restricted';
import { toastDone } from '../../../../components/toast';
import { ToolEditor } from '../../../../components/tool-editor';
import { useSession } from '../../../../session';

export const Route = createFileRoute('/w/$ws/tools/$id/edit')({
  component: EditToolPage,
});

function EditToolPage() {
  const { workspace } = useSession();
  const { id } = Route.useParams();
  const navigate = useNavigate();
  const tool = useQuery(toolQuery(workspace.slug, id));
  const set = useSetDefinition(workspace.slug, id);
  const params = { ws: workspace.slug, id };
  const back = { label: tool.data?.name ?? 'Tool', to: '/w/$ws/tools/$id', params } as const;
  return (
    <Restricted needs="edit_registry" title="Edit tool" back={back}>
      <Page title="Edit tool" back={back}>
        <Loaded query={tool}>
          {(data) =>
            data.definition ? (
              <ToolEditor
                initial={data.definition}
                submitLabel="Save tool"
                pending={set.isPending}
                error={set.error}
                onSubmit={(definition) =>
                  set.mutate(definition, {
                    onSuccess: () => {
                      toastDone('Tool saved.');
                      void navigate({ to: '/w/$ws/tools/$id', params, ignoreBlocker: true });
                    },
                  })
                }
              />
            ) : (
              <p>This tool comes from an OpenAPI document. Edit the document and import it again.</p>
            )
          }
        </Loaded>
      </Page>
    </Restricted>
  );
}
