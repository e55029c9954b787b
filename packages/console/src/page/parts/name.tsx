import type { JSX } from 'preact'
import { elided } from '../format.ts'

/** A name of an object: of a long one the middle is left out, and told on hover. */
export function Name({ name, most = 40 }: { readonly name: string; readonly most?: number }): JSX.Element {
  const short = elided(name, most)
  return short === name ? <span>{name}</span> : <span title={name}>{short}</span>
}
