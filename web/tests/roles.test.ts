import { expect, test } from 'vitest';
import { may } from '../src/session';

// Rule: AUTH-M1. The table comes from crates/model/src/member.rs with the API's document.
test.each([
  ['viewer', []],
  ['member', ['call_tools']],
  ['developer', ['call_tools', 'edit_registry']],
  ['admin', ['call_tools', 'edit_registry', 'administer']],
  ['owner', ['call_tools', 'edit_registry', 'administer']],
] as const)('a %s may %j', (role, actions) => {
  expect(
    (['call_tools', 'edit_registry', 'administer'] as const).filter((action) => may(role, action)),
  ).toEqual(actions);
});
