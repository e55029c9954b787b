import { createHash } from 'node:crypto'

/** A UUID derived from a name, so that ids of the default resources are the same in every run. */
export function stableId(name: string): string {
  const hex = createHash('sha256').update(`exoscale/${name}`).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
