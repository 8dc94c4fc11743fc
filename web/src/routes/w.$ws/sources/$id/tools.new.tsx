import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { useCreateTool } from '../../../../api/tools';
import { Page } from '../../../../components/page';
import { Restricted } from '../../../../components/restricted';
import { toastDone } from '../../../../components/toast';
import { ToolEditor } from '../../../../components/tool-editor';
import { useSession } from '../../../../session';

export const Route = createFileRoute('/w/$ws/sources/$id/tools/new')({
  component: NewToolPage,
});

function NewToolPage() {
  const { workspace } = useSession();
  const { id } = Route.useParams();
  const navigate = useNavigate();
  const create = useCreateTool(workspace.slug, id);
  const back = { label: 'Source', to: '/w/$ws/sources/$id', params: { ws: workspace.slug, id } } as const;
  return (
    <Restricted needs="edit_registry" title="New tool" back={back}>
      <Page title="New tool" back={back}>
        <ToolEditor
          submitLabel="Create tool"
          pending={create.isPending}
          error={create.error}
          onSubmit={(definition) =>
            create.mutate(
              { ...definition, enabled: true },
              {
                onSuccess: (tool) => {
                  toastDone(`${tool.name} was created.`);
                  void navigate({
                    to: '/w/$ws/tools/$id',
                    params: { ws: workspace.slug, id: tool.id },
                    ignoreBlocker: true,
                  });
                },
              },
            )
          }
        />
      </Page>
    </Restricted>
  );
}
