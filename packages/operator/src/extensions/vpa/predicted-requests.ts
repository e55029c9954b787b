/** What a VerticalPodAutoscaler will have the containers of new pods ask for (buffers-and-dra.md 4). */
import {
  type ContainerResourcePolicy,
  ownValue,
  parseResource,
  parseResources,
  type Resources,
  type VerticalPodAutoscaler,
} from '@tenon/api'
import type { ContainerRequests } from '../../state/pods/predictions.ts'

const off = 'Off'
const usuallyControlled = ['cpu', 'memory']

/**
 * By container; empty when it changes nothing about new pods.
 * @throws RangeError when an amount is not a quantity.
 */
export function predictedRequests({ spec, status }: VerticalPodAutoscaler): readonly ContainerRequests[] {
  if (spec?.targetRef === undefined || spec.updatePolicy?.updateMode === off) return []
  const policies = new Map(
    (spec.resourcePolicy?.containerPolicies ?? []).map((policy) => [policy.containerName ?? '', policy]),
  )
  return (status?.recommendation?.containerRecommendations ?? []).flatMap(({ containerName, target }) => {
    const policy = policies.get(containerName) ?? policies.get('*')
    if (policy?.mode === off) return []
    const requests = boosted(
      allowed(parseResources(target), policy),
      (policy?.startupBoost ?? spec.startupBoost)?.cpu,
    )
    return Object.keys(requests).length === 0 ? [] : [{ container: containerName, requests }]
  })
}

/** What is recommended of the resources that are controlled, within the bounds. */
function allowed(target: Resources, policy: ContainerResourcePolicy | undefined): Resources {
  const [least, most] = [parseResources(policy?.minAllowed), parseResources(policy?.maxAllowed)]
  return Object.fromEntries(
    (policy?.controlledResources ?? usuallyControlled).flatMap((name) => {
      const amount = ownValue(target, name)
      if (amount === undefined) return []
      const raised = Math.max(amount, ownValue(least, name) ?? amount)
      return [[name, Math.min(raised, ownValue(most, name) ?? raised)]]
    }),
  )
}

type CpuBoost = NonNullable<ContainerResourcePolicy['startupBoost']>['cpu']

/** A boost is given on top of what the bounds allow. */
function boosted(requests: Resources, boost: CpuBoost): Resources {
  const cpu = ownValue(requests, 'cpu')
  if (cpu === undefined || boost === undefined) return requests
  if (boost.type === 'Factor') return { ...requests, cpu: cpu * Math.max(1, Math.trunc(boost.factor ?? 1)) }
  if (boost.type === 'Quantity' && boost.quantity !== undefined)
    return { ...requests, cpu: cpu + parseResource('cpu', boost.quantity) }
  return requests
}
