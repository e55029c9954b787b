/** Which changes of a MachineDeployment's template need new Machines (cluster-api.md 18). */
import type { FullDeployment } from '../kinds.ts'

/** Fields of a Machine that change in place. */
const changeInPlace: ReadonlySet<string> = new Set([
  'deletion',
  'minReadySeconds',
  'nodeDeletionTimeout',
  'nodeDrainTimeout',
  'nodeVolumeDetachTimeout',
  'readinessGates',
  'taints',
])

const alphabet = 'bcdfghjklmnpqrstvwxz2456789'

/** Equal for templates with equal Machines; letters and digits. */
export function templateHash({ spec }: FullDeployment): string {
  const fields = Object.entries(spec?.template?.spec ?? {}).filter(([field]) => !changeInPlace.has(field))
  const text = JSON.stringify(
    fields.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    (_key, value: unknown) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
        : value,
  )
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  let rest = hash >>> 0
  let letters = ''
  for (let index = 0; index < 6; index++) {
    letters += alphabet[rest % alphabet.length] ?? ''
    rest = Math.floor(rest / alphabet.length)
  }
  return letters
}
