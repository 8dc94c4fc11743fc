import { queryOptions, useMutation } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type UpstreamPreview = Schemas['UpstreamPreview'];
export type Upstream = Schemas['Upstream'];
export type UpstreamChange = Schemas['UpstreamChange'];
export type NewUpstream = Schemas['NewUpstream'];

export const upstreamQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'sources', id, 'upstream'),
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/sources/{id}/upstream', { params: { path: { ws, id } } })),
  });

export function usePreviewUpstream(ws: string) {
  return useMutation({
    mutationFn: (body: Schemas['UpstreamLook']) =>
      answer(api.POST('/api/v1/workspaces/{ws}/upstreams/preview', { params: { path: { ws } }, body })),
  });
}

export const useAddUpstream = (ws: string) =>
  useChange(ws, 'sources', (body: NewUpstream) =>
    answer(api.POST('/api/v1/workspaces/{ws}/upstreams', { params: { path: { ws } }, body })),
  );

export const useChangeUpstream = (ws: string, id: string) =>
  useChange(ws, 'sources', (body: Schemas['UpstreamSettings']) =>
    answer(
      api.PATCH('/api/v1/workspaces/{ws}/sources/{id}/upstream', { params: { path: { ws, id } }, body }),
    ),
  );

/** Looks at the server now; with a digest, agrees to the changes that it names. */
export const useSyncUpstream = (ws: string, id: string) =>
  useChange(
    ws,
    'sources',
    (agreed?: string) =>
      answer(
        api.POST('/api/v1/workspaces/{ws}/sources/{id}/sync', {
          params: { path: { ws, id } },
          body: agreed === undefined ? {} : { agreed },
        }),
      ),
    { alsoFailed: true },
  );
