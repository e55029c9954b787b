import { useState } from 'preact/hooks'
import type { JSX } from 'preact'

/** Copies a text. */
export function CopyButton({ text, what }: { readonly text: string; readonly what: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false)
  return (
    <>
      <button
        type="button"
        onClick={() => {
          navigator.clipboard.writeText(text).then(
            () => setCopied(true),
            () => setCopied(false),
          )
        }}
      >
        Copy {what}
      </button>
      <span role="status">{isCopied ? 'Copied' : ''}</span>
    </>
  )
}

/** A command with a copy button. */
export function Command({
  text,
  what = 'command',
}: {
  readonly text: string
  readonly what?: string
}): JSX.Element {
  return (
    <div class="command">
      <code>{text}</code>
      <CopyButton text={text} what={what} />
    </div>
  )
}

export function saveText(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
