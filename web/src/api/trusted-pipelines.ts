import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type TrustedPipeline = Schemas['TrustedPipeline'];
export type PipelineTrust = Schemas['PipelineTrust'];

const all = '/api/v1/workspaces/{ws}/trusted-pipelines';
const one = '/api/v1/workspaces/{ws}/trusted-pipelines/{id}';

export const trustedPipelinesQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'trusted-pipelines'),
    queryFn: () => answer(api.GET(all, { params: { path: { ws } } })),
  });

/** Trusts a pipeline; with an id, changes that one. */
export const useSaveTrustedPipeline = (ws: string, id: string | undefined) =>
  useChange(ws, 'trusted-pipelines', (body: PipelineTrust) =>
    id === undefined
      ? answer(api.POST(all, { params: { path: { ws } }, body }))
      : answer(api.PUT(one, { params: { path: { ws, id } }, body })),
  );

export const useDeleteTrustedPipeline = (ws: string) =>
  useChange(ws, 'trusted-pipelines', (id: string) =>
    answer(api.DELETE(one, { params: { path: { ws, id } } })),
  );
