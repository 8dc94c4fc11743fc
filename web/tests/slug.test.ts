import { expect, test } from 'vitest';
import { slugFault, suggestSlug } from '../src/slug';

test.each([
  ['Acme GmbH', 'acme-gmbh'],
  ['  Nordhavn & Søn ', 'nordhavn-s-n'],
  ['Café Olé', 'cafe-ole'],
  ['---', ''],
  ['a'.repeat(60), 'a'.repeat(40)],
  [`${'a'.repeat(39)} b`, 'a'.repeat(39)],
])('the name %j suggests the address %j', (name, slug) => {
  expect(suggestSlug(name)).toBe(slug);
});

test.each(['ab', '-abc', 'abc-', 'Abc', 'a_b', 'xn--a', 'a'.repeat(41)])(
  'the address %j is refused with a reason',
  (slug) => {
    expect(slugFault(slug)).not.toBeNull();
  },
);

test.each(['abc', 'a-c', 'a--bc', '123'])('the address %j is accepted', (slug) => {
  expect(slugFault(slug)).toBeNull();
});
