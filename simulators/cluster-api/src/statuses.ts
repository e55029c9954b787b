/** Writes statuses of objects. */
import { isDeepStrictEqual } from 'node:util'
import type { Condition, KubeObject, ResourceType } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import type { HubParts } from './hub-parts.ts'

/** A condition without its transition time. */
export type UndatedCondition = Pick<Condition, 'type' | 'status'> & {
  readonly reason: string
  readonly message?: string
}

interface WithStatus extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/** A condition with its status and the reason for it. */
export function newCondition(
  type: string,
  holds: boolean,
  reasons: readonly [ifSo: string, ifNot: string],
): UndatedCondition {
  return { type, status: holds ? 'True' : 'False', reason: holds ? reasons[0] : reasons[1] }
}

/** Writes changed parts of a status; undefined parts are removed. */
export function writeStatus(
  { api, runtime }: Pick<HubParts, 'api' | 'runtime'>,
  type: ResourceType,
  object: WithStatus,
  status: Readonly<Record<string, unknown>>,
  conditions: readonly UndatedCondition[],
): void {
  const old = new Map(Object.entries(object.status ?? {}))
  const nowMs = runtime.clock.now()
  const changes = Object.entries({ ...status, conditions: dated(nowMs, object, conditions) }).filter(
    ([part, value]) => !isDeepStrictEqual(old.get(part), value),
  )
  if (changes.length === 0) return
  const patch = Object.fromEntries(changes.map(([part, value]) => [part, value ?? null]))
  api.patch(type, object.metadata.namespace, object.metadata.name, { status: patch }, 'status')
}

function dated(
  nowMs: number,
  { metadata, status }: WithStatus,
  conditions: readonly UndatedCondition[],
): object[] {
  const { generation = 0 } = metadata
  return conditions.map((condition) => {
    const before = status?.conditions?.find(({ type }) => type === condition.type)
    const isOld = before?.status === condition.status
    return {
      message: '',
      ...condition,
      observedGeneration: generation,
      lastTransitionTime: (isOld ? before.lastTransitionTime : undefined) ?? rfc3339(nowMs),
    }
  })
}
