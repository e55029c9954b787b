import { useEffect, useRef } from 'preact/hooks'
import type { ComponentChildren, JSX } from 'preact'

/** A modal dialog. Esc closes it, and the focus returns to where it was. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    element.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog ref={element} aria-labelledby="dialog-title" onClose={onClose}>
      <header class="dialog-head">
        <h2 id="dialog-title">{title}</h2>
        <button type="button" onClick={() => element.current?.close()}>
          Close
        </button>
      </header>
      {children}
    </dialog>
  )
}
