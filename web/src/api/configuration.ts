import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key } from './nouns';

/** Kinds of objects that a file describes. */
export type ObjectKind = Schemas['ConfigurationObjectKind'];

/** An object of a workspace by its kind and its key: name, URI or slug. */
export interface ObjectKey {
  kind: ObjectKind;
  key: string;
}

/** The workspace as a YAML file, or the part of that file that is one object. */
export const configurationQuery = (ws: string, object?: ObjectKey) =>
  queryOptions({
    queryKey: key(ws, 'configuration', ...(object ? [object.kind, object.key] : [])),
    queryFn: () =>
      answer<string>(
        api.GET('/api/v1/workspaces/{ws}/configuration', {
          params: { path: { ws }, query: { format: 'yaml', ...object } },
          parseAs: 'text',
        }),
      ),
  });
