/** Reads what rows need from objects. */
import {
  conditionOf,
  isConditionTrue,
  isQuantity,
  type KubeObject,
  labels,
  type NodeClaim,
  ownValue,
  parseResource,
  type Resources,
  type ResourceList,
} from '@tenon/api'
import type { NodeDecision } from '@tenon/operator'
import type { ClaimRow, Share, Why } from './view.ts'

/** Type, zone, capacity type and NodePool of a Node or a NodeClaim. */
export function placeOf({
  metadata,
}: KubeObject): Pick<ClaimRow, 'nodePool' | 'instanceType' | 'zone' | 'capacityType'> {
  const own = (key: string) => ownValue(metadata.labels, key)
  return {
    ...present('nodePool', own(labels.nodePool)),
    ...present('instanceType', own(labels.instanceType)),
    ...present('zone', own(labels.zone)),
    ...present('capacityType', own(labels.capacityType)),
  }
}

/** A record with the member, or an empty one if the value is absent or empty. */
export function present<K extends string, V>(name: K, value: V | undefined): { readonly [Name in K]?: V } {
  return value === undefined || value === '' ? {} : ({ [name]: value } as { readonly [Name in K]?: V })
}

export function whyOf(decision: NodeDecision | undefined): { readonly why?: Why } {
  if (decision === undefined || decision.cause === 'unknown') return {}
  const { cause, message, until } = decision
  return { why: { cause, message, ...present('until', until) } }
}

/** The next step of a claim according to its conditions; undefined if all are complete. */
export function nextStep(
  claim: NodeClaim,
): Pick<ClaimRow, 'waitsFor' | 'waitsSince' | 'waitsMessage'> | undefined {
  const steps = ['Launched', 'Registered', 'Initialized'] as const
  const at = steps.findIndex((type) => !isConditionTrue(claim, type))
  const waitsFor = steps[at]
  if (waitsFor === undefined) return undefined
  const before = steps[at - 1]
  const since =
    before === undefined
      ? claim.metadata.creationTimestamp
      : (conditionOf(claim, before)?.lastTransitionTime ?? claim.metadata.creationTimestamp)
  return {
    waitsFor,
    ...present('waitsSince', since),
    ...present('waitsMessage', conditionOf(claim, waitsFor)?.message),
  }
}

/** In canonical units; invalid quantities are omitted. */
export function amountsOf(list: ResourceList | undefined): Resources {
  const amounts: [string, number][] = []
  for (const [name, quantity] of Object.entries(list ?? {})) {
    if (isQuantity(quantity)) amounts.push([name, parseResource(name, quantity)])
  }
  return Object.fromEntries(amounts)
}

/** Requests and allocatable per resource. */
export function sharesOf(
  used: Resources | undefined,
  allocatable: ResourceList | undefined,
): Readonly<Record<string, Share>> {
  const there = amountsOf(allocatable)
  const names = [...new Set([...Object.keys(there), ...Object.keys(used ?? {})])].toSorted()
  return Object.fromEntries(
    names.map((name): [string, Share] => {
      const amount = ownValue(there, name)
      return [
        name,
        {
          ...(used !== undefined && { used: ownValue(used, name) ?? 0 }),
          ...(amount !== undefined && { allocatable: amount }),
        },
      ]
    }),
  )
}

export function isLeaving({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined
}
