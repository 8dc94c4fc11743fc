/** The part of JSON Schema 2020-12 that a form and a tree can show; the rest stays visible as raw JSON. */
export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema | boolean;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  format?: string;
  examples?: unknown[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  $ref?: string;
  $defs?: Record<string, Schema>;
  deprecated?: boolean;
  additionalProperties?: Schema | boolean;
  [other: string]: unknown;
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Follows local references. A chain longer than any honest one ends. */
export function resolve(schema: Schema | boolean | undefined, root: Schema): Schema {
  let current: Schema = isObject(schema) ? schema : {};
  for (let hops = 0; hops < 32 && typeof current.$ref === 'string'; hops += 1) {
    const ref = current.$ref;
    if (ref === '#') return root;
    if (!ref.startsWith('#/')) return current;
    let target: unknown = root;
    for (const part of ref.slice(2).split('/')) {
      const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
      target = isObject(target) ? target[name] : Array.isArray(target) ? target[Number(name)] : undefined;
    }
    if (!isObject(target)) return current;
    const { $ref: _, ...beside } = current;
    current = { ...(target as Schema), ...beside };
  }
  return current;
}

/** The types without null, and whether null is among them. */
export function typesOf(schema: Schema): { types: string[]; nullable: boolean } {
  const all = Array.isArray(schema.type) ? schema.type : schema.type ? [schema.type] : [];
  return { types: all.filter((one) => one !== 'null'), nullable: all.includes('null') };
}

/** "string", "list of integer", "string or number", in words that a person reads. */
export function typeName(given: Schema | boolean | undefined, root: Schema, depth = 0): string {
  const schema = resolve(given, root);
  const { types, nullable } = typesOf(schema);
  const orNull = nullable ? ' or null' : '';
  if (schema.const !== undefined) return `always ${JSON.stringify(schema.const)}`;
  if (types.length === 1 && types[0] === 'array') {
    return `${depth > 2 ? 'list' : `list of ${typeName(schema.items, root, depth + 1)}`}${orNull}`;
  }
  if (types.length > 0) return `${types.join(' or ')}${schema.format ? ` (${schema.format})` : ''}${orNull}`;
  if (schema.properties) return `object${orNull}`;
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices && depth < 3) {
    return [...new Set(choices.map((one) => typeName(one, root, depth + 1)))].join(' or ');
  }
  if (schema.enum) return 'one of a list';
  return 'any value';
}

/** Limits in words. */
export function limits(schema: Schema): string[] {
  const found: string[] = [];
  if (schema.minimum !== undefined) found.push(`≥ ${schema.minimum}`);
  if (schema.exclusiveMinimum !== undefined) found.push(`> ${schema.exclusiveMinimum}`);
  if (schema.maximum !== undefined) found.push(`≤ ${schema.maximum}`);
  if (schema.exclusiveMaximum !== undefined) found.push(`< ${schema.exclusiveMaximum}`);
  if (schema.minLength !== undefined) found.push(`at least ${schema.minLength} characters`);
  if (schema.maxLength !== undefined) found.push(`at most ${schema.maxLength} characters`);
  if (schema.minItems !== undefined) found.push(`at least ${schema.minItems} items`);
  if (schema.maxItems !== undefined) found.push(`at most ${schema.maxItems} items`);
  if (schema.pattern !== undefined) found.push(`matches ${schema.pattern}`);
  if (schema.default !== undefined) found.push(`default ${JSON.stringify(schema.default)}`);
  return found;
}

/** The first arguments of a form: defaults where a required field has one, nothing else. */
export function startingValue(schema: Schema, root: Schema): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const name of schema.required ?? []) {
    const field = resolve(schema.properties?.[name], root);
    if (field.default !== undefined) value[name] = field.default;
    else if (field.const !== undefined) value[name] = field.const;
    else if (typesOf(field).types[0] === 'object' && field.properties)
      value[name] = startingValue(field, root);
  }
  return value;
}
