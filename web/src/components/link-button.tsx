import { Anchor, Button, type ButtonProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { AnchorHTMLAttributes, Ref } from 'react';

function RawLinkButton(
  props: ButtonProps & AnchorHTMLAttributes<HTMLAnchorElement> & { ref?: Ref<HTMLAnchorElement> },
) {
  return <Button component="a" {...props} />;
}

/** A button that goes somewhere: an anchor, so that it opens in a new tab too. */
export const LinkButton = createLink(RawLinkButton);

function RawTextLink(
  props: AnchorHTMLAttributes<HTMLAnchorElement> & {
    underline?: 'always';
    ref?: Ref<HTMLAnchorElement>;
  },
) {
  return <Anchor component="a" fz="sm" {...props} />;
}

export const TextLink = createLink(RawTextLink);
