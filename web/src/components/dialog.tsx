import { Modal } from '@mantine/core';
import type { ReactNode } from 'react';

/**
 * A question over the page. Escape, and a click beside it, take it away, unless it is `kept` until a button of its own
 * closes it. Its title names it for a screen reader. The page behind does not scroll (theme.css).
 */
export function Dialog({
  title,
  opened,
  onClose,
  kept,
  wide,
  children,
}: {
  title: string;
  opened: boolean;
  onClose: () => void;
  kept?: boolean;
  /** For text that is read in lines. */
  wide?: boolean;
  children: ReactNode;
}) {
  return (
    <Modal.Root
      opened={opened}
      onClose={onClose}
      size={wide ? 'xl' : 'md'}
      closeOnEscape={!kept}
      closeOnClickOutside={!kept}
    >
      <Modal.Overlay />
      <Modal.Content data-scroll-lock>
        {/* Without the library's header, which would be a second banner of the document. */}
        <Modal.Body pt="lg">
          <Modal.Title fz="1.125rem" fw={600} mb="md">
            {title}
          </Modal.Title>
          {children}
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}
