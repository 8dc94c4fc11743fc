import { useQuery } from '@tanstack/react-query';
import { promptsQuery, useSetServerPrompts } from '../../../../api/prompts';
import { resourcesQuery, useSetServerResources } from '../../../../api/resources';
import type { ServerDetail } from '../../../../api/servers';
import { type Offer, OfferList } from '../../../../components/offer-list';
import { Loaded } from '../../../../components/page';
import { type PublishedKind, published } from '../../../../components/published';
import { type Names, PublishedChoice } from '../../../../components/published-choice';
import { toastDone } from '../../../../components/toast';
import { useSession } from '../../../../session';

/** The prompts that the server publishes, and their choice. */
export function ServerPrompts({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const prompts = useQuery(promptsQuery(workspace.slug));
  const save = useSetServerPrompts(workspace.slug);
  return (
    <Loaded query={prompts} lines={6}>
      {({ items }) => (
        <OfferChoice
          kind="prompt"
          offers={items.map((one) => ({
            id: one.id,
            name: one.name,
            title: one.title,
            note: one.source_name ?? null,
            awake: one.enabled && one.state === 'active',
          }))}
          before={new Map(server.prompts.map((one) => [one.prompt_id, one.published_name]))}
          pending={save.isPending}
          error={save.error}
          onSave={(names, done) =>
            save.mutate(
              {
                id: server.id,
                prompts: [...names].map(([prompt_id, published_name]) => ({ prompt_id, published_name })),
              },
              { onSuccess: done },
            )
          }
        />
      )}
    </Loaded>
  );
}

/** The resources that the server publishes, and their choice. */
export function ServerResources({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const resources = useQuery(resourcesQuery(workspace.slug));
  const save = useSetServerResources(workspace.slug);
  return (
    <Loaded query={resources} lines={6}>
      {({ items }) => (
        <OfferChoice
          kind="resource"
          offers={items.map((one) => ({
            id: one.id,
            name: one.uri,
            title: one.title || one.name,
            note: one.source_name ?? null,
            awake: one.enabled && one.state === 'active',
          }))}
          before={new Map(server.resources.map((one) => [one.resource_id, one.published_uri]))}
          pending={save.isPending}
          error={save.error}
          onSave={(names, done) =>
            save.mutate(
              {
                id: server.id,
                resources: [...names].map(([resource_id, published_uri]) => ({ resource_id, published_uri })),
              },
              { onSuccess: done },
            )
          }
        />
      )}
    </Loaded>
  );
}

function OfferChoice({
  kind,
  offers,
  before,
  pending,
  error,
  onSave,
}: {
  kind: PublishedKind;
  offers: Offer[];
  before: Names;
  pending: boolean;
  error: Error | null;
  onSave: (names: Names, done: () => void) => void;
}) {
  const shown = offers.filter((one) => one.awake || before.has(one.id));
  const { many, plural } = published[kind];
  const done = () => toastDone(`${many} saved. Connected clients see the new list.`);
  return (
    <PublishedChoice
      word={plural}
      none={shown.length === 0 && `There are no enabled ${plural} in this workspace.`}
      before={before}
      pending={pending}
      error={error}
      onSave={(names) => onSave(names, done)}
    >
      {(names, onChange, clashes) => (
        <OfferList kind={kind} offers={shown} names={names} onChange={onChange} clashes={clashes} />
      )}
    </PublishedChoice>
  );
}
