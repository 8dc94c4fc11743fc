import { expect, test } from 'vitest';
import { may } from '../src/session';

// The table of crates/model/src/member.rs (AUTH-M1).
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
