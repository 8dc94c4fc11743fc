import { useQuery } from '@tanstack/react-query';
import { promptsQuery, useSetServerPrompts } from '../api/prompts';
import { resourcesQuery, useSetServerResources } from '../api/resources';
import type { ServerDetail } from '../api/servers';
import { useSession } from '../session';
import { OfferPicker } from './offer-picker';
import { Loaded } from './page';
import { toastDone } from './toast';

export function ServerPrompts({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const prompts = useQuery(promptsQuery(workspace.slug));
  const save = useSetServerPrompts(workspace.slug);
  return (
    <Loaded query={prompts} lines={6}>
      {({ items }) => (
        <OfferPicker
          word="prompts"
          offers={items.map((one) => ({
            id: one.id,
            key: one.name,
            title: one.title,
            note: one.source_name ?? null,
            awake: one.enabled && one.state === 'active',
          }))}
          before={new Map(server.prompts.map((one) => [one.prompt_id, one.published_name]))}
          pending={save.isPending}
          error={save.error}
          onSave={(names) =>
            save.mutate(
              {
                id: server.id,
                prompts: [...names].map(([prompt_id, published_name]) => ({ prompt_id, published_name })),
              },
              { onSuccess: () => toastDone('Prompts saved. Connected clients see the new list.') },
            )
          }
        />
      )}
    </Loaded>
  );
}

export function ServerResources({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const resources = useQuery(resourcesQuery(workspace.slug));
  const save = useSetServerResources(workspace.slug);
  return (
    <Loaded query={resources} lines={6}>
      {({ items }) => (
        <OfferPicker
          word="resources"
          offers={items.map((one) => ({
            id: one.id,
            key: one.uri,
            title: one.title || one.name,
            note: one.source_name ?? null,
            awake: one.enabled && one.state === 'active',
          }))}
          before={new Map(server.resources.map((one) => [one.resource_id, one.published_uri]))}
          pending={save.isPending}
          error={save.error}
          onSave={(names) =>
            save.mutate(
              {
                id: server.id,
                resources: [...names].map(([resource_id, published_uri]) => ({ resource_id, published_uri })),
              },
              { onSuccess: () => toastDone('Resources saved. Connected clients see the new list.') },
            )
          }
        />
      )}
    </Loaded>
  );
}
