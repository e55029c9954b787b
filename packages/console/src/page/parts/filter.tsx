import type { JSX } from 'preact'
import { choose, chosen } from '../state/router.ts'

/** What a view is filtered by; empty for all. It is a part of the address. */
export function filterText(): string {
  return chosen('filter') ?? ''
}

export function Filter(): JSX.Element {
  return (
    <label>
      Filter
      <input
        type="search"
        value={filterText()}
        onInput={(event) => choose('filter', event.currentTarget.value || undefined)}
      />
    </label>
  )
}
