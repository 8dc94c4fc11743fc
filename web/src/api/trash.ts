import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { changed, key } from './nouns';

export type DeletedThing = Schemas['DeletedThing'];
export type DeletedKind = Schemas['DeletedKind'];

export const trashQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'trash'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/trash', { params: { path: { ws } } })),
  });

/** Brings a deleted thing back, whatever its kind. */
export function useRestore(ws: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ kind, id }: Pick<DeletedThing, 'kind' | 'id'>): Promise<unknown> => {
      const params = { path: { ws, id } };
      switch (kind) {
        case 'source':
          return answer(api.POST('/api/v1/workspaces/{ws}/sources/{id}/restore', { params }));
        case 'server':
          return answer(api.POST('/api/v1/workspaces/{ws}/servers/{id}/restore', { params }));
        case 'prompt':
          return answer(api.POST('/api/v1/workspaces/{ws}/prompts/{id}/restore', { params }));
        case 'resource':
          return answer(api.POST('/api/v1/workspaces/{ws}/resources/{id}/restore', { params }));
      }
    },
    onSuccess: (_, { kind }) => changed(client, ws, `${kind}s`),
  });
}

/** Milliseconds for which a list offers a deleted thing; after that only the trash does. */
const offered = 10 * 60_000;

/** Things of a kind that were deleted within ten minutes, and the change that restores one. */
export function useRecentlyDeleted(ws: string, kind: DeletedKind, enabled: boolean) {
  const trash = useQuery({ ...trashQuery(ws), enabled });
  const restore = useRestore(ws);
  const items = enabled ? (trash.data?.items ?? []) : [];
  const things = items.filter(
    (one) => one.kind === kind && Date.parse(one.deleted_at) > Date.now() - offered,
  );
  return { things, restore };
}
