/** The mistakes that the world has to find. */
import { annotations, type KubeObject, type NodeClaim, type NodePool, type Pod } from '@tenon/api'
import type { PlantedBug } from './planted-bug.ts'
import {
  deletesOnce,
  evictsByDeleting,
  finalizerLate,
  hidesUnknownMachines,
  keepsBootstrapTokens,
  keepsOrphans,
  keepsUnregisteredTaint,
  reusesOldDecisions,
  takesAskedForGone,
  talkative,
} from './wrappers.ts'

const withoutAnnotation =
  (name: string) =>
  (object: KubeObject): KubeObject => {
    const { [name]: _, ...rest } = object.metadata.annotations ?? {}
    return { ...object, metadata: { ...object.metadata, annotations: rest } }
  }

const withLimit = (factor: number, add: number) => (object: KubeObject) => {
  const pool = object as NodePool
  const cpu = pool.spec.limits?.['cpu']
  if (cpu === undefined) return pool
  const limits = { ...pool.spec.limits, cpu: String(Number(cpu) * factor + add) }
  return { ...pool, spec: { ...pool.spec, limits } } as KubeObject
}

const withoutBudgets = (object: KubeObject): KubeObject => {
  const pool = object as NodePool
  const disruption = { ...pool.spec.disruption, budgets: [{ nodes: '100%' }] }
  return { ...pool, spec: { ...pool.spec, disruption } } as KubeObject
}

/** Drains wait for no pod that tolerates everything. */
const undrainable = (object: KubeObject): KubeObject => {
  const pod = object as Pod
  const tolerations = [...(pod.spec.tolerations ?? []), { operator: 'Exists' as const }]
  return { ...pod, spec: { ...pod.spec, tolerations } } as KubeObject
}

const immortal = (object: KubeObject): KubeObject => {
  const claim = object as NodeClaim
  return { ...claim, spec: { ...claim.spec, expireAfter: 'Never' } } as KubeObject
}

/** All of them, by name. */
export const plantedBugs: readonly PlantedBug[] = [
  {
    name: 'finalizer-late',
    mistake: 'the finalizer of a claim is stored a minute after its machine was asked for',
    api: finalizerLate,
  },
  {
    name: 'finalizer-early-off',
    mistake: 'a claim is let go as soon as the cloud has accepted the deletion of its machine',
    provider: takesAskedForGone,
  },
  { name: 'pdb-ignored', mistake: 'pods are deleted instead of evicted', api: evictsByDeleting },
  {
    name: 'delete-once',
    mistake: 'a deletion that the cloud refused is not tried again',
    provider: deletesOnce,
  },
  {
    name: 'stale-decision',
    mistake: 'what was decided on the last snapshot is carried out once more',
    decider: reusesOldDecisions,
  },
  {
    name: 'limit-off-by-one',
    mistake: 'the limits of a NodePool are exceeded by one machine',
    sees: { nodepools: withLimit(1, 8) },
  },
  { name: 'limit-ignored', mistake: 'NodePools have no limits', sees: { nodepools: withLimit(100, 0) } },
  {
    name: 'deadline-ignored',
    mistake: 'the termination grace period never ends',
    sees: { nodeclaims: withoutAnnotation(annotations.terminationTimestamp) },
  },
  {
    name: 'do-not-disrupt-evicted',
    mistake: 'annotation karpenter.sh/do-not-disrupt of pods is not read',
    sees: { pods: withoutAnnotation(annotations.doNotDisrupt) },
  },
  {
    name: 'undrained',
    mistake: 'machines end without waiting for the pods of their nodes',
    sees: { pods: undrainable },
  },
  { name: 'orphans-kept', mistake: 'machines without a claim are left alone', cloud: keepsOrphans },
  {
    name: 'taint-kept',
    mistake: 'the taint of unregistered nodes is never removed',
    api: keepsUnregisteredTaint,
  },
  {
    name: 'no-adoption',
    mistake: 'a launch that is tried again does not look for the machine of the first try',
    cloud: hidesUnknownMachines,
  },
  {
    name: 'budget-ignored',
    mistake: 'budgets of NodePools are not read',
    sees: { nodepools: withoutBudgets },
  },
  { name: 'lease-ignored', mistake: 'every replica leads', leadsAtOnce: true, replicas: 2 },
  {
    name: 'secret-logged',
    mistake: 'the credentials of the cloud are logged with a launch',
    logger: talkative,
  },
  { name: 'tokens-kept', mistake: 'bootstrap tokens are never removed', api: keepsBootstrapTokens },
  {
    name: 'expiry-ignored',
    mistake: 'claims do not expire',
    sees: { nodeclaims: immortal },
  },
]

/** @throws Error naming the known ones. */
export function plantedBug(name: string): PlantedBug {
  const found = plantedBugs.find((bug) => bug.name === name)
  if (found === undefined)
    throw new Error(`no planted bug ${name}; known are ${plantedBugs.map((bug) => bug.name).join(', ')}`)
  return found
}
