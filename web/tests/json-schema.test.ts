import { expect, test } from 'vitest';
import { limits, resolve, type Schema, startingValue, typeName } from '../src/json-schema';

test('a local reference is followed, and what stands beside it wins', () => {
  const root: Schema = { $defs: { 'a/b': { type: 'string', description: 'there' } } };
  expect(resolve({ $ref: '#/$defs/a~1b', description: 'here' }, root)).toEqual({
    type: 'string',
    description: 'here',
  });
});

test('a reference to itself ends', () => {
  const root: Schema = { $defs: { loop: { $ref: '#/$defs/loop' } } };
  expect(resolve({ $ref: '#/$defs/loop' }, root)).toEqual({ $ref: '#/$defs/loop' });
});

test('a reference to nowhere stays as it is', () => {
  expect(resolve({ $ref: '#/$defs/none' }, {})).toEqual({ $ref: '#/$defs/none' });
});

test('types are read in words', () => {
  expect(typeName({ type: 'array', items: { type: 'integer' } }, {})).toBe('list of integer');
  expect(typeName({ type: ['string', 'null'], format: 'date' }, {})).toBe('string (date) or null');
  expect(typeName({ oneOf: [{ type: 'string' }, { type: 'integer' }] }, {})).toBe('string or integer');
  expect(typeName(true, {})).toBe('any value');
});

test('a list of itself is named without end of words', () => {
  const root: Schema = { type: 'array', items: { $ref: '#' } };
  expect(typeName(root, root)).toBe('list of list of list of list');
});

test('limits are read in words', () => {
  expect(limits({ minimum: 0, exclusiveMaximum: 5, default: 2 })).toEqual(['≥ 0', '< 5', 'default 2']);
});

test('a form starts with the defaults of what is required, and nothing else', () => {
  const schema: Schema = {
    required: ['a', 'b', 'deep'],
    properties: {
      a: { type: 'integer', default: 3 },
      b: { type: 'string' },
      c: { type: 'string', default: 'unasked' },
      deep: { type: 'object', required: ['d'], properties: { d: { const: 'fixed' } } },
    },
  };
  expect(startingValue(schema, schema)).toEqual({ a: 3, deep: { d: 'fixed' } });
});
