/** Each view has an address that includes its selection, so that it can be shared and reloaded. */
import { computed, signal } from '@preact/signals'
import { objectRefOf } from '../../model/object-ref.ts'

export interface View {
  readonly path: string
  readonly title: string
}

export const views: readonly View[] = [
  { path: '/', title: 'Overview' },
  { path: '/map', title: 'Map' },
  { path: '/pods', title: 'Pods pending' },
  { path: '/pools', title: 'Pools' },
  { path: '/decisions', title: 'Decisions' },
  { path: '/what-if', title: 'What if' },
  { path: '/cost', title: 'Cost' },
  { path: '/replay', title: 'Replay' },
]

const address = signal(new URL(location.href))

export const path = computed(() => address.value.pathname)

/** Where an object is shown; no view of the menu. */
export const objectView = '/object'

/** The object that the address names. */
export const shownObject = computed(() =>
  path.value === objectView ? objectRefOf(address.value.searchParams) : undefined,
)

/** A parameter of the current address. */
export function chosen(name: string): string | undefined {
  return address.value.searchParams.get(name) ?? undefined
}

/** Changes a parameter without adding to the browser's history. */
export function choose(name: string, value: string | undefined): void {
  const url = new URL(address.value)
  if (value === undefined) url.searchParams.delete(name)
  else url.searchParams.set(name, value)
  history.replaceState(undefined, '', url)
  address.value = url
}

export function go(to: string): void {
  history.pushState(undefined, '', to)
  address.value = new URL(location.href)
  scrollTo(0, 0)
}

export function startRouter(): void {
  // The token is used up; remove it, so that it is neither shared nor reloaded.
  const url = new URL(location.href)
  if (url.searchParams.has('token')) {
    url.searchParams.delete('token')
    history.replaceState(undefined, '', url)
    address.value = url
  }
  addEventListener('popstate', () => {
    address.value = new URL(location.href)
  })
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey
    if (link === null || !isPlain || link.origin !== location.origin || link.hasAttribute('download')) return
    if (link.hash !== '' && link.pathname === location.pathname) return
    event.preventDefault()
    go(link.href)
  })
}
