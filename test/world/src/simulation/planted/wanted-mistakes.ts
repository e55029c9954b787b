/** Bugs of what users have asked for (wanted.md). */
import { type CapacityQuota, type KubeObject, labels, type Node } from '@tenon/api'
import type { Operator } from '@tenon/operator'
import { rfc3339 } from '@tenon/runtime'
import type { PlantedContext } from './planted-bug.ts'

/** Every quota allows one more large node. */
export const quotaOffByOne = (object: KubeObject): KubeObject => {
  const quota = object as CapacityQuota
  const more: Readonly<Record<string, number>> = { cpu: 8, nodes: 1 }
  const resources = Object.fromEntries(
    Object.entries(quota.spec.limits.resources).map(([name, value]) => [
      name,
      String(Number(value) + (more[name] ?? 0)),
    ]),
  )
  return { ...quota, spec: { ...quota.spec, limits: { resources } } } as KubeObject
}

/** An annotation has another value, if it is set. */
export const withAnnotation =
  (name: string, value: (now: string) => string) =>
  (object: KubeObject): KubeObject => {
    const now = object.metadata.annotations?.[name]
    if (now === undefined) return object
    const annotations = { ...object.metadata.annotations, [name]: value(now) }
    return { ...object, metadata: { ...object.metadata, annotations } }
  }

/** No launch counts before its NodeClaim can be seen. */
export function reservesNothing({ state: { limitReservations } }: Operator): void {
  limitReservations.ofQuota = () => ({})
}

/** Where all nodes are compared, hours lie between the failures of any two. */
export function seesSingleFailures(operator: Operator): void {
  listsNodes(operator, failedHoursAgo)
}

/** Where all nodes are compared, they are in no zone. */
export function seesOneZone(operator: Operator): void {
  listsNodes(operator, (node) => {
    const { [labels.zone]: _, ...rest } = node.metadata.labels ?? {}
    return { ...node, metadata: { ...node.metadata, labels: rest } }
  })
}

function listsNodes({ caches: { nodes } }: Operator, change: (node: Node, index: number) => Node): void {
  const list = nodes.list.bind(nodes)
  nodes.list = () => list().map(change)
}

const failedHoursAgo = (node: Node, hours: number): Node => {
  const conditions = node.status?.conditions?.map((condition) => {
    const time = Date.parse(condition.lastTransitionTime ?? '') - hours * 3_600_000
    return Number.isNaN(time) ? condition : { ...condition, lastTransitionTime: rfc3339(time) }
  })
  return conditions === undefined ? node : { ...node, status: { ...node.status, conditions } }
}

/** Drains evict pods at once, and PodDisruptionBudgets do not hold nodes of pods that were to be replaced first. */
export function evictsAtOnce({ state: { surgingPods } }: Operator): void {
  surgingPods.deploymentOf = () => undefined
}

const restartedAt = 'kubectl.kubernetes.io/restartedAt'

/** Neither the Deployment nor its pods say that it was restarted, or for what. */
export const withoutRestarts = (object: KubeObject): KubeObject => {
  const { ['tenon.sh/surged-for']: _, [restartedAt]: __, ...rest } = object.metadata.annotations ?? {}
  const bare = { ...object, metadata: { ...object.metadata, annotations: rest } }
  const { spec } = object as KubeObject & {
    readonly spec: { readonly template?: { readonly metadata?: KubeObject['metadata'] } }
  }
  if (spec.template?.metadata?.annotations === undefined) return bare
  const { [restartedAt]: ___, ...kept } = spec.template.metadata.annotations
  const template = { ...spec.template, metadata: { ...spec.template.metadata, annotations: kept } }
  return { ...bare, spec: { ...spec, template } } as KubeObject
}

/** Worlds in which a process has begun. */
const begun = new WeakSet<object>()

/** After a restart of the controller, zones are no longer kept apart. */
export function forgetsZones({ state }: Operator, { world }: PlantedContext): void {
  const isFirst = !begun.has(world)
  begun.add(world)
  if (isFirst) return
  const wishes = state.poolWishes.bind(state)
  state.poolWishes = (pool) => {
    const { disruptZones: _, ...rest } = wishes(pool)
    return rest
  }
}
