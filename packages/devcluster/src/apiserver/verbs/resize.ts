/** In-place resize of pods: containers get other resources, and nothing else changes. */
import { ownValue } from '@tenon/api'
import type { FieldError, StoredObject } from '../../contract.ts'
import { sameJson } from '../equality.ts'

interface SizedContainer {
  readonly name?: string
  readonly resources?: unknown
}

/** The stored pod with the new resources of its containers. */
function resized(old: StoredObject, next: StoredObject): StoredObject {
  const containersOf = (object: StoredObject, list: string) =>
    (ownValue(object['spec'] as Readonly<Record<string, unknown>> | undefined, list) ??
      []) as readonly SizedContainer[]
  const lists = ['containers', 'initContainers'].filter((list) => containersOf(old, list).length > 0)
  const sized = lists.map((list) => {
    const given = new Map(containersOf(next, list).map((container) => [container.name, container]))
    const containers = containersOf(old, list).map((container) => {
      const { resources } = given.get(container.name) ?? container
      return resources === undefined ? container : { ...container, resources }
    })
    return [list, containers]
  })
  return { ...old, spec: { ...(old['spec'] as object), ...Object.fromEntries(sized) } }
}

/** Errors for changes besides container resources. */
export function beyondResize(old: StoredObject, next: StoredObject): readonly FieldError[] {
  if (sameJson(next['spec'], resized(old, next)['spec'])) return []
  return [
    { field: 'spec', kind: 'forbidden', detail: 'only cpu and memory resources of containers are mutable' },
  ]
}
