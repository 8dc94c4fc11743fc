import { Alert } from '@mantine/core';
import type { UseMutationResult, UseQueryResult } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMay, useSession } from '../session';
import { DeletePanel } from './delete-panel';
import { ManagedBy } from './managed-by';
import { Loaded, Page } from './page';
import { type PublishedKind, published } from './published';
import { Restricted } from './restricted';
import { toastAction, toastDone } from './toast';

/** Properties of an editor of a prompt, a resource or a tool, beside its first value. */
export interface EditorProps<Definition> {
  submitLabel: string;
  pending: boolean;
  error: Error | null;
  onSubmit: (definition: Definition) => void;
}

type Change<Input> = UseMutationResult<unknown, Error, Input>;

function useBack(kind: PublishedKind) {
  const { workspace } = useSession();
  const { many, to } = published[kind];
  return { label: many, to: to.list, params: { ws: workspace.slug } } as const;
}

/** The page of a new prompt or resource. */
export function NewPublished<Definition>({
  kind,
  create,
  children,
}: {
  kind: PublishedKind;
  create: Change<Definition>;
  children: (editor: EditorProps<Definition>) => ReactNode;
}) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const back = useBack(kind);
  const { one, to } = published[kind];
  const params = { ws: workspace.slug };
  const done = () => {
    toastAction(
      `${one === 'prompt' ? 'Prompt' : 'Resource'} created.`,
      'Add to a server',
      () => void navigate({ to: '/w/$ws/servers', params }),
    );
    void navigate({ to: to.list, params, ignoreBlocker: true });
  };
  return (
    <Restricted needs="edit_registry" title={`New ${one}`} back={back}>
      <Page title={`New ${one}`} back={back}>
        {children({
          submitLabel: `Create ${one}`,
          pending: create.isPending,
          error: create.error,
          onSubmit: (definition) => create.mutate(definition, { onSuccess: done }),
        })}
      </Page>
    </Restricted>
  );
}

interface Published {
  id: string;
  name: string;
  title?: string | null;
  description?: string | null;
  updated_at: string;
  source_name?: string | null;
  /** The place of a resource’s content; prompts have none. */
  body?: string;
  managed_by?: string;
}

/** The name of the upstream server that has it. A resource of this workspace may name an HTTP source instead. */
const upstreamOf = ({ body = 'upstream', source_name }: Published) =>
  body === 'upstream' ? source_name : undefined;

/** The page of a prompt or resource: its editor and its deletion, or where it comes from. */
export function PublishedPage<Thing extends Published, Definition>({
  kind,
  query,
  rewrite,
  remove,
  actions,
  children,
}: {
  kind: PublishedKind;
  query: UseQueryResult<Thing>;
  rewrite: Change<Definition>;
  remove: Change<string>;
  /** Actions of one that is written here. */
  actions: (thing: Thing) => ReactNode;
  children: (thing: Thing, editor: EditorProps<Definition>) => ReactNode;
}) {
  const edits = useMay('edit_registry');
  const back = useBack(kind);
  const { one, saved } = published[kind];
  return (
    <Page
      title={query.data?.name ?? (one === 'prompt' ? 'Prompt' : 'Resource')}
      back={back}
      beside={<ManagedBy owner={query.data?.managed_by} />}
      lede={query.data?.title}
      actions={query.data && !upstreamOf(query.data) && actions(query.data)}
    >
      <Loaded query={query} lines={8}>
        {(thing) =>
          upstreamOf(thing) ? (
            <Alert color="sea" title={`From ${upstreamOf(thing)}`}>
              This {one} comes from an upstream server and is edited there. {thing.description}
            </Alert>
          ) : (
            <>
              <fieldset key={thing.updated_at} disabled={!edits} className="bare">
                {children(thing, {
                  submitLabel: `Save ${one}`,
                  pending: rewrite.isPending,
                  error: rewrite.error,
                  onSubmit: (definition) => rewrite.mutate(definition, { onSuccess: () => toastDone(saved) }),
                })}
              </fieldset>
              {edits && <Deletion kind={kind} thing={thing} remove={remove} />}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function Deletion({
  kind,
  thing,
  remove,
}: {
  kind: PublishedKind;
  thing: Published;
  remove: Change<string>;
}) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const { one, to } = published[kind];
  const leave = () => void navigate({ to: to.list, params: { ws: workspace.slug }, ignoreBlocker: true });
  return (
    <DeletePanel
      noun={one}
      name={thing.name}
      note="It is removed from every server. You can restore it from the trash for 30 days."
      busy={remove.isPending}
      error={remove.error}
      act={() => remove.mutate(thing.id, { onSuccess: leave })}
    >
      Servers stop offering it immediately. You can restore it from the trash for 30 days.
    </DeletePanel>
  );
}
