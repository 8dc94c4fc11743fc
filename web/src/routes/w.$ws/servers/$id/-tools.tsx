import { useQuery } from '@tanstack/react-query';
import { ApiError } from '../../../../api/http';
import { type ServerDetail, useSetServerTools } from '../../../../api/servers';
import { useToolBudget } from '../../../../api/tool-budget';
import { toolsQuery } from '../../../../api/tools';
import { Loaded } from '../../../../components/page';
import { PublishedChoice } from '../../../../components/published-choice';
import { toastDone } from '../../../../components/toast';
import { ToolPicker } from '../../../../components/tool-picker';
import { nameFault } from '../../../../rules';
import { useSession } from '../../../../session';

/** The tools that the server publishes, and their choice. */
export function ServerTools({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const tools = useQuery(toolsQuery(workspace.slug));
  const save = useSetServerTools(workspace.slug);
  const before = new Map(server.tools.map((tool) => [tool.tool_id, tool.published_name]));
  const details = save.error instanceof ApiError ? save.error.details : undefined;
  return (
    <Loaded query={tools} lines={8}>
      {(all) => {
        const shown = all.filter((tool) => before.has(tool.id) || (tool.enabled && tool.state === 'active'));
        return (
          <PublishedChoice
            word="tools"
            note="The field beside a selected tool is its published name (what clients see)."
            none={shown.length === 0 && 'This workspace has no enabled tools.'}
            before={before}
            refused={(details as { names?: string[] } | undefined)?.names}
            faultOf={nameFault}
            pending={save.isPending}
            error={save.error}
            onSave={(names) =>
              save.mutate(
                {
                  id: server.id,
                  tools: [...names].map(([tool_id, published_name]) => ({ tool_id, published_name })),
                },
                { onSuccess: () => toastDone('Tools saved. Connected clients see the new list.') },
              )
            }
          >
            {(names, onChange, clashes) => (
              <PickerWithBudget
                slug={server.slug}
                tools={shown}
                names={names}
                onChange={onChange}
                clashes={clashes}
                onlySelected={before.size > 0}
              />
            )}
          </PublishedChoice>
        );
      }}
    </Loaded>
  );
}

function PickerWithBudget({
  slug,
  ...picker
}: { slug: string } & Omit<Parameters<typeof ToolPicker>[0], 'budget'>) {
  const { workspace } = useSession();
  return <ToolPicker {...picker} budget={useToolBudget(workspace.slug, slug, picker.names)} />;
}
