import { queryOptions } from '@tanstack/react-query';
import type { Schema } from '../json-schema';

interface Media {
  schema?: Schema;
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

interface Operation {
  operationId: string;
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: { content?: Record<string, Media> };
  responses: Record<string, { description: string; content?: Record<string, Media> }>;
  security?: Record<string, string[]>[];
  'x-scopes'?: string[];
}

/** The document of the API, as far as the reference shows it. */
export interface ApiDocument {
  info: { title: string; description?: string };
  tags?: { name: string; description?: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: Record<string, unknown>;
}

/** A route as the reference shows it. */
export interface ApiRoute {
  id: string;
  method: string;
  path: string;
  tag: string;
  title: string;
  description: string | undefined;
  parameters: Parameter[];
  body: Schema | undefined;
  answers: { status: string; description: string; schema: Schema | undefined }[];
  /** The scope that a token needs; none for routes that are open to every token. */
  scope: string | undefined;
  takesTokens: boolean;
}

const schemaOf = (content: Record<string, Media> | undefined) => Object.values(content ?? {})[0]?.schema;

/** The routes of a document in the order of its tags, then of its paths. */
export function routesOf(document: ApiDocument): ApiRoute[] {
  const order = (document.tags ?? []).map(({ name }) => name);
  const routes = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      id: operation.operationId,
      method: method.toUpperCase(),
      path,
      tag: operation.tags?.[0] ?? 'other',
      title: operation.summary ?? operation.operationId,
      description: operation.description,
      parameters: operation.parameters ?? [],
      body: schemaOf(operation.requestBody?.content),
      answers: Object.entries(operation.responses)
        .filter(([status]) => status !== 'default')
        .map(([status, { description, content }]) => ({ status, description, schema: schemaOf(content) })),
      scope: operation['x-scopes']?.[0],
      takesTokens: (operation.security ?? []).some((one) => 'token' in one),
    })),
  );
  const place = (tag: string) => (order.includes(tag) ? order.indexOf(tag) : order.length);
  return routes.sort((a, b) => place(a.tag) - place(b.tag) || a.path.localeCompare(b.path));
}

/** The routes that have every word of a search. */
export function matching(routes: ApiRoute[], search: string): ApiRoute[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return routes.filter((route) => {
    const text = `${route.method} ${route.path} ${route.title} ${route.description ?? ''} ${route.id} ${
      route.scope ?? ''
    } ${route.tag}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export const referenceQuery = queryOptions({
  queryKey: ['api-document'],
  queryFn: async (): Promise<ApiDocument> => {
    const answer = await globalThis.fetch(new Request(`${window.location.origin}/api/v1/openapi.json`));
    if (!answer.ok) throw new Error(`The reference could not be read (${answer.status}).`);
    return answer.json();
  },
  staleTime: Number.POSITIVE_INFINITY,
});
