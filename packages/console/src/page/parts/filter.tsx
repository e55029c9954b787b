import type { JSX } from 'preact'
import { choose, chosen } from '../state/router.ts'

/** The filter of a view, part of its address; empty for none. */
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
