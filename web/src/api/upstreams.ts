import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';

export type UpstreamPreview = Schemas['UpstreamPreview'];
export type Upstream = Schemas['Upstream'];
export type UpstreamChange = Schemas['UpstreamChange'];
export type NewUpstream = Schemas['NewUpstream'];

export const upstreamQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: [ws, 'sources', id, 'upstream'],
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/sources/{id}/upstream', { params: { path: { ws, id } } })),
  });

export function usePreviewUpstream(ws: string) {
  return useMutation({
    mutationFn: (body: Schemas['UpstreamLook']) =>
      answer(api.POST('/api/v1/workspaces/{ws}/upstreams/preview', { params: { path: { ws } }, body })),
  });
}

/** What changes a source changes tools, servers and the overview: everything of the workspace is read again. */
function useRefresh(ws: string) {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: [ws] });
}

export function useAddUpstream(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: NewUpstream) =>
      answer(api.POST('/api/v1/workspaces/{ws}/upstreams', { params: { path: { ws } }, body })),
    onSuccess: refresh,
  });
}

export function useChangeUpstream(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: Schemas['UpstreamSettings']) =>
      answer(
        api.PATCH('/api/v1/workspaces/{ws}/sources/{id}/upstream', { params: { path: { ws, id } }, body }),
      ),
    onSuccess: refresh,
  });
}

/** Looks at the server now; with a digest, agrees to the changes that it names. */
export function useSyncUpstream(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (agreed?: string) =>
      answer(
        api.POST('/api/v1/workspaces/{ws}/sources/{id}/sync', {
          params: { path: { ws, id } },
          body: agreed === undefined ? {} : { agreed },
        }),
      ),
    // A failed look is noted too.
    onSettled: refresh,
  });
}
