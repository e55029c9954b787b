import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { JSX } from 'preact'
import { objectPath } from '../../model/object-ref.ts'
import type { Found } from '../../model/search.ts'
import { ask } from '../state/questions.ts'
import { go } from '../state/router.ts'
import { Dialog } from './dialog.tsx'
import { Name } from './name.tsx'

const isOpen = signal(false)

/** `/` does the same. */
export function SearchButton(): JSX.Element {
  return (
    <button type="button" class="search" aria-keyshortcuts="/" onClick={() => (isOpen.value = true)}>
      Search <kbd>/</kbd>
    </button>
  )
}

export function SearchDialog(): JSX.Element | null {
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target))
        return
      event.preventDefault()
      isOpen.value = true
    }
    document.addEventListener('keydown', open)
    return () => document.removeEventListener('keydown', open)
  }, [])
  if (!isOpen.value) return null
  return (
    <Dialog title="Search all objects" onClose={close}>
      <SearchBox />
    </Dialog>
  )
}

function close(): void {
  isOpen.value = false
}

/** Where `/` is a character, or another dialog has the keys. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, textarea, select, dialog') !== null
}

interface Answered extends Found {
  readonly text: string
}

const none: Answered = { text: '', objects: [], total: 0 }

function SearchBox(): JSX.Element {
  const [text, setText] = useState('')
  const [answered, setAnswered] = useState<Answered>(none)
  const [failure, setFailure] = useState<string>()
  const [at, setAt] = useState(0)
  /** Enter was pressed before the answer: the first object is opened when it comes. */
  const isAwaited = useRef(false)
  const { objects, total } = answered
  const isCurrent = answered.text === text
  const open = (ref: Found['objects'][number] | undefined) => {
    if (ref === undefined) return
    close()
    go(objectPath(ref))
  }
  useEffect(() => {
    if (text.trim() === '') {
      setAnswered({ ...none, text })
      return undefined
    }
    const over = new AbortController()
    const take = (found: Found) => {
      if (over.signal.aborted) return
      setFailure(undefined)
      setAnswered({ ...found, text })
      setAt(0)
      if (isAwaited.current) open(found.objects[0])
      isAwaited.current = false
    }
    const fail = (error: unknown) => {
      if (!over.signal.aborted) setFailure(error instanceof Error ? error.message : String(error))
    }
    ask<Found>(`/api/search?${new URLSearchParams({ text }).toString()}`, over.signal).then(take, fail)
    return () => over.abort()
  }, [text])
  useEffect(() => {
    document.querySelector(`#found-${at}`)?.scrollIntoView({ block: 'nearest' })
  }, [at])
  const onKeyDown = (event: KeyboardEvent) => {
    const { length } = objects
    if (event.key === 'ArrowDown' && length > 0) setAt((at + 1) % length)
    else if (event.key === 'ArrowUp' && length > 0) setAt((at + length - 1) % length)
    else if (event.key !== 'Enter') return
    else if (isCurrent) open(objects[at])
    else isAwaited.current = true
    event.preventDefault()
  }
  return (
    <>
      <label>
        A part of a name; several words have to be in it
        <input
          type="text"
          class="search-text"
          role="combobox"
          autofocus
          autocomplete="off"
          spellcheck={false}
          aria-expanded={objects.length > 0}
          aria-controls="found"
          {...(objects.length > 0 && { 'aria-activedescendant': `found-${at}` })}
          maxLength={512}
          value={text}
          onInput={(event) => {
            isAwaited.current = false
            setText(event.currentTarget.value)
          }}
          onKeyDown={onKeyDown}
        />
      </label>
      <p class={failure === undefined ? 'quiet' : 'failure'} role="status">
        {failure ?? statusText(text, answered, isCurrent)}
      </p>
      <ul id="found" class="found" role="listbox" aria-label="Found objects">
        {objects.map((ref, index) => (
          <li
            key={objectPath(ref)}
            id={`found-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => open(ref)}
          >
            <span class="quiet">{ref.kind}</span>{' '}
            <Name name={ref.namespace === undefined ? ref.name : `${ref.namespace}/${ref.name}`} most={80} />
          </li>
        ))}
      </ul>
      {total > objects.length && (
        <p class="quiet">
          The closest {objects.length} of {total}; type more to find others.
        </p>
      )}
    </>
  )
}

function statusText(text: string, { objects, total }: Answered, isCurrent: boolean): string {
  if (text.trim() === '')
    return 'Nodes, pods, NodeClaims, NodePools, node classes and workloads. Arrows choose, Enter opens.'
  if (!isCurrent) return 'Searching…'
  if (objects.length === 0) return 'No object has that in its name.'
  return `${total} found`
}
