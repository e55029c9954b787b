import type { JSX } from 'preact'
import { elided } from '../format.ts'

/** Shorter names do not wrap at hyphens. */
const mostUnbroken = 20

/**
 * A name; the middle of a long one is elided and shown on hover. Bidirectional controls in it do not affect
 * other text.
 */
export function Name({ name, most = 40 }: { readonly name: string; readonly most?: number }): JSX.Element {
  const short = elided(name, most)
  if (short !== name)
    return (
      <bdi dir="ltr" class="long" title={name}>
        {short}
      </bdi>
    )
  return (
    <bdi dir="ltr" class={name.length <= mostUnbroken ? 'unbroken' : 'long'}>
      {name}
    </bdi>
  )
}
