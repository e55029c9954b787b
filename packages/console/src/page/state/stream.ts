/** The stream of changes; closed while the tab is hidden. */
import { signal } from '@preact/signals'
import type { PageChange, PagePicture } from '../../model/page-view.ts'
import { applyChanges, applyPicture, tick, user } from './store.ts'

/** `expired`: the server does not know this browser any more. */
export type Connection = 'connecting' | 'live' | 'cut' | 'expired'

export const connection = signal<Connection>('connecting')
/** Time of the last event. */
export const cutSinceMs = signal<number | undefined>(undefined)
/** Rows of a picture that is not complete yet. */
export const arrivedRows = signal(0)
/** Why the server cannot provide data; undefined if it does not respond at all. */
export const cutBecause = signal<string | undefined>(undefined)

/** A tab that is hidden for longer is disconnected until it is visible again. */
const hiddenMs = 10_000
const retryMs = 2000

let source: EventSource | undefined
let lastId = ''
let hiding: ReturnType<typeof setTimeout> | undefined
let retrying: ReturnType<typeof setTimeout> | undefined

export function startStream(): void {
  open()
  setInterval(() => {
    if (!document.hidden) tick.value = Date.now()
  }, 1000)
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiding)
    if (document.hidden) hiding = setTimeout(close, hiddenMs)
    else if (source === undefined) open()
  })
}

function close(): void {
  clearTimeout(retrying)
  source?.close()
  source = undefined
}

function open(): void {
  close()
  arrivedRows.value = 0
  source = new EventSource(lastId === '' ? '/api/stream' : `/api/stream?after=${encodeURIComponent(lastId)}`)
  source.addEventListener('open', () => {
    heard()
  })
  const parts: PageChange[] = []
  source.addEventListener('part', (event) => {
    const part = JSON.parse(event.data as string) as PageChange
    parts.push(part)
    if ('table' in part) arrivedRows.value += part.set.length
  })
  source.addEventListener('picture', (event) => {
    arrivedRows.value = 0
    applyPicture(parts.splice(0), JSON.parse(event.data as string) as PagePicture)
    noted(event)
  })
  source.addEventListener('changes', (event) => {
    applyChanges(JSON.parse(event.data as string) as readonly PageChange[])
    noted(event)
  })
  source.addEventListener('error', () => {
    if (connection.value !== 'expired') connection.value = 'cut'
    cutSinceMs.value ??= Date.now()
    void again()
  })
}

function noted(event: MessageEvent): void {
  lastId = event.lastEventId
  heard()
}

function heard(): void {
  connection.value = 'live'
  cutSinceMs.value = undefined
  cutBecause.value = undefined
}

/** EventSource does not report why a stream has ended, so another request with the same requirements finds out. */
async function again(): Promise<void> {
  close()
  // Proxies that sign users in redirect what does not ask for JSON.
  const headers = { accept: 'application/json' }
  const answer = await fetch('/api/savings', { headers }).catch(() => undefined)
  if (answer?.status === 401) {
    cutBecause.value =
      user.value === undefined ? undefined : 'You are signed out. Reload the page to sign in again.'
    connection.value = 'expired'
    return
  }
  cutBecause.value = await problemOf(answer)
  if (!document.hidden) retrying = setTimeout(open, retryMs)
}

async function problemOf(answer: Response | undefined): Promise<string | undefined> {
  if (answer === undefined || answer.ok) return undefined
  const { error } = (await answer.json().catch(() => ({}))) as { readonly error?: string }
  return error === undefined ? undefined : `The cluster cannot be followed: ${error}`
}
