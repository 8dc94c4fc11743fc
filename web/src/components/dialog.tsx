import { Modal } from '@mantine/core';
import type { ReactNode } from 'react';

/** A question over the page. Escape, and a click beside it, take it away; its title names it for a screen reader. */
export function Dialog({
  title,
  opened,
  onClose,
  children,
}: {
  title: string;
  opened: boolean;
  onClose: () => void;
  children: ReactNode;
}) {
  return (
    <Modal.Root opened={opened} onClose={onClose}>
      <Modal.Overlay />
      <Modal.Content>
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
