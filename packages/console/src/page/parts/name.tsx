import type { JSX } from 'preact'
import { elided } from '../format.ts'

/** Names that are no longer are not broken where they have a hyphen. */
const mostUnbroken = 20

/** A name of an object: of a long one the middle is left out, and told on hover. It turns no text around it. */
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
