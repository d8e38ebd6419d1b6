/** A modal dialog: the browser's own, so that focus, Escape and screen readers work. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { Icon } from './glyph';

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at the foot; the last one is the one that acts. */
  foot?: ComponentChildren;
  wide?: boolean;
  /** Without head and frame, for the palette. */
  bare?: boolean;
}

export function Dialog({ title, onClose, children, foot, wide = false, bare = false }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Before the next key arrives, not after the next frame: what is typed at once belongs in the dialog.
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={`dialog${wide ? ' dialog-wide' : ''}${bare ? ' dialog-bare' : ''}`}
      {...(bare ? { 'aria-label': title } : { 'aria-labelledby': heading })}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        // The dialog itself is the target only where the backdrop is.
        if (event.target === ref.current) onClose();
      }}
    >
      {bare ? (
        children
      ) : (
        <div class="dialog-box">
          <div class="dialog-head">
            <h2 id={heading}>{title}</h2>
            <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          </div>
          <div class="dialog-body">{children}</div>
          {foot && <div class="dialog-foot">{foot}</div>}
        </div>
      )}
    </dialog>
  );
}
