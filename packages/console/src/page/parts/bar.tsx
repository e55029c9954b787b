import type { JSX } from 'preact'
import type { Share } from '../../model/view.ts'
import { amountText, percentText, shareOf } from '../format.ts'

/** Requests and allocatable, as text with a bar. */
export function ShareBar({
  resource,
  share,
  label,
}: {
  readonly resource: string
  readonly share: Share | undefined
  readonly label?: string
}): JSX.Element {
  const part = shareOf(share?.used, share?.allocatable)
  return (
    <div class="share">
      <span class="share-text">
        {label !== undefined && <span class="share-label">{label}</span>}
        <span>
          {amountText(resource, share?.used)} / {amountText(resource, share?.allocatable)}
        </span>
        <span class="share-percent">{percentText(share?.used, share?.allocatable)}</span>
      </span>
      <span class={part !== undefined && part > 1 ? 'bar over' : 'bar'} aria-hidden="true">
        <span style={{ width: `${Math.min(1, part ?? 0) * 100}%` }} />
      </span>
    </div>
  )
}
