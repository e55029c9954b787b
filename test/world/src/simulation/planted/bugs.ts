/** The planted bugs that the world has to find. */
import { annotations, type KubeObject, type NodeClaim, type NodePool, type Pod } from '@tenon/api'
import { type FaultKind, faultKinds, type Story, type WorkloadKind, workloadKinds } from '../story.ts'
import {
  decrementsTwice,
  forgetsWhatItAdded,
  seesNoFreshBinding,
  takesAnyDeployment,
} from './cluster-api-mistakes.ts'
import { keepsRoomOfDeleted, overlooksKeptRoom, sellsRoomTwice, takesRoomForPods } from './buffer-mistakes.ts'
import { adoptsByLabel, deletesUnconfirmed, forgetsRefusals, stampsEveryNode } from './clever-mistakes.ts'
import { awaitsNoDriver, overlooksStartingDevices, promisesHeldDevices } from './device-mistakes.ts'
import { contentWithOne, overlooksRunningGangs, seesEveryNodeFree } from './gang-mistakes.ts'
import { countsAnew, failsScrapes, keepsSeriesOfPods } from './operator-mistakes.ts'
import type { PlantedBug, Profile } from './planted-bug.ts'
import {
  evictsAtOnce,
  forgetsZones,
  quotaOffByOne,
  reservesNothing,
  seesOneZone,
  seesSingleFailures,
  withAnnotation,
  withoutRestarts,
} from './wanted-mistakes.ts'
import {
  believesRefusals,
  forgetsForGood,
  forgetsWhatWasMade,
  ignoresIdentity,
  keepsSurplus,
  keepsTwins,
  leavesLabelsOut,
  overlooksPodsOfTwins,
  skipsFreshLooks,
  tellsKubeletsAll,
  withoutRefusals,
} from './view-mistakes.ts'
import {
  deletesOnce,
  evictsByDeleting,
  finalizerLate,
  hidesUnknownInstances,
  invertsPrices,
  keepsBootstrapTokens,
  keepsDisruptedTaint,
  keepsLease,
  keepsOrphans,
  keepsUnregisteredTaint,
  replacesTwice,
  reusesOldDecisions,
  takesAskedForGone,
  takesNeighbours,
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

/** Drains do not wait for pods that tolerate everything. */
const undrainable = (object: KubeObject): KubeObject => {
  const pod = object as Pod
  const tolerations = [...(pod.spec.tolerations ?? []), { operator: 'Exists' as const }]
  return { ...pod, spec: { ...pod.spec, tolerations } } as KubeObject
}

const immortal = (object: KubeObject): KubeObject => {
  const claim = object as NodeClaim
  return { ...claim, spec: { ...claim.spec, expireAfter: 'Never' } } as KubeObject
}

/** For a pool of five. */
const oneMore = (nodes: string): string =>
  nodes.endsWith('%') ? `${Math.min(100, Number.parseInt(nodes, 10) + 20)}%` : String(Number(nodes) + 1)

const withAnotherNode = (object: KubeObject): KubeObject => {
  const pool = object as NodePool
  const budgets = (pool.spec.disruption?.budgets ?? [{ nodes: '10%' }]).map((budget) => ({
    ...budget,
    nodes: oneMore(budget.nodes),
  }))
  return { ...pool, spec: { ...pool.spec, disruption: { ...pool.spec.disruption, budgets } } } as KubeObject
}

/** The whole world, as `npm run world` plays it: for bugs that need several faults. */
const whole: Profile = { hours: 1, nodes: 8, faults: 'high', withoutFaults: [], withoutWorkloads: [] }

/** Short stories with few nodes, with these kinds of workload, and these kinds of faults all the time. */
function brief(
  hours: number,
  workloads: readonly WorkloadKind[],
  faults: readonly FaultKind[] = [],
): Profile {
  return {
    hours,
    nodes: 3,
    faults: faults.length === 0 ? 'none' : 'storm',
    withoutFaults: faultKinds.filter((kind) => !faults.includes(kind)),
    withWorkloads: workloads,
    withoutWorkloads: workloadKinds.filter(
      (kind) => kind !== 'deployments' && kind !== 'daemonSets' && !workloads.includes(kind),
    ),
  }
}

const atClever = (profile: Profile): Profile => ({ ...profile, provider: 'clever-cloud' })

const atClusterApi = (profile: Profile): Profile => ({ ...profile, provider: 'cluster-api' })

/** All of them, by name. */
export const plantedBugs: readonly PlantedBug[] = [
  {
    name: 'finalizer-late',
    mistake: 'the finalizer of a claim is stored a minute after the request for its instance',
    api: finalizerLate,
    profile: brief(0.1, []),
  },
  {
    name: 'finalizer-early-off',
    mistake:
      'the finalizer of a claim is removed as soon as the cloud has accepted the deletion of its instance',
    provider: takesAskedForGone,
    profile: brief(0.4, ['restarts']),
  },
  {
    name: 'pdb-ignored',
    mistake: 'pods are deleted instead of evicted',
    api: evictsByDeleting,
    profile: brief(0.5, ['poolRollouts', 'manualDeletions']),
  },
  {
    name: 'delete-once',
    mistake: 'a deletion that the cloud refused is not retried',
    provider: deletesOnce,
    profile: brief(0.3, ['restarts', 'manualDeletions'], ['cloudRefusal', 'failedDeletion']),
  },
  {
    name: 'stale-decision',
    mistake: 'the decision on the previous snapshot is executed again',
    decider: reusesOldDecisions,
    profile: brief(0.3, ['restarts']),
  },
  {
    name: 'limit-off-by-one',
    mistake: 'the limits of a NodePool are exceeded by one instance',
    sees: { nodepools: withLimit(1, 8) },
    profile: brief(0.3, ['restarts', 'bursts']),
  },
  {
    name: 'limit-ignored',
    mistake: 'NodePools have no limits',
    sees: { nodepools: withLimit(100, 0) },
    profile: brief(0.3, ['restarts', 'bursts']),
  },
  {
    name: 'deadline-ignored',
    mistake: 'the termination grace period never ends',
    sees: { nodeclaims: withoutAnnotation(annotations.terminationTimestamp) },
    profile: brief(0.7, ['poolRollouts', 'doNotDisrupt', 'manualDeletions', 'restarts']),
  },
  {
    name: 'do-not-disrupt-evicted',
    mistake: 'the annotation `karpenter.sh/do-not-disrupt` of pods is ignored',
    sees: { pods: withoutAnnotation(annotations.doNotDisrupt) },
    profile: brief(0.5, ['poolRollouts', 'doNotDisrupt', 'manualDeletions']),
  },
  {
    name: 'undrained',
    mistake: 'instances are deleted without waiting for the pods of their nodes',
    sees: { pods: undrainable },
    profile: brief(0.4, ['poolRollouts', 'manualDeletions']),
  },
  {
    name: 'orphans-kept',
    mistake: 'instances without a claim are not deleted',
    cloud: keepsOrphans,
    profile: brief(0.5, ['bursts', 'restarts', 'abandonedClaims']),
  },
  {
    name: 'neighbour-deleted',
    mistake: 'the instance of another claim is deleted together with that of a deleted claim',
    provider: takesNeighbours,
    profile: brief(0.4, ['restarts']),
  },
  {
    name: 'never-given-up',
    mistake: 'nodes that never become ready are never given up',
    settings: { initializationTimeoutMs: Number.POSITIVE_INFINITY },
    profile: brief(1.2, ['restarts'], ['neverReady']),
  },
  {
    name: 'taint-kept',
    mistake: 'the taint of unregistered nodes is never removed',
    api: keepsUnregisteredTaint,
    profile: brief(0.4, []),
  },
  {
    name: 'no-adoption',
    mistake: 'a retried launch does not look for the instance of the first attempt',
    cloud: hidesUnknownInstances,
    profile: whole,
  },
  {
    name: 'budget-ignored',
    mistake: 'budgets of NodePools are ignored',
    sees: { nodepools: withoutBudgets },
    profile: { ...brief(0.6, ['restarts', 'poolRollouts', 'disruptionBudgets']), nodes: 5 },
  },
  {
    name: 'lease-ignored',
    mistake: 'every replica leads',
    leadsAtOnce: true,
    replicas: 2,
    profile: brief(0.1, []),
  },
  {
    name: 'secret-logged',
    mistake: 'a launch logs the credentials of the cloud',
    logger: talkative,
    profile: brief(0.1, []),
  },
  {
    name: 'tokens-kept',
    mistake: 'bootstrap tokens are never removed',
    api: keepsBootstrapTokens,
    profile: brief(0.1, []),
  },
  {
    name: 'expiry-ignored',
    mistake: 'claims do not expire',
    sees: { nodeclaims: immortal },
    profile: brief(1.3, ['expiry']),
  },
  {
    name: 'budget-off-by-one',
    mistake: 'one node more than a budget allows is disrupted at once',
    sees: { nodepools: withAnotherNode },
    profile: { ...brief(0.6, ['restarts', 'poolRollouts', 'disruptionBudgets']), nodes: 5 },
  },
  {
    name: 'second-look-skipped',
    mistake: 'nodes are removed without the pause and validation',
    settings: { validationDelayMs: 0 },
    profile: brief(0.5, ['restarts']),
  },
  {
    name: 'prices-inverted',
    mistake: 'refreshed prices are inverted, and nodes are replaced by more expensive ones',
    provider: invertsPrices,
    profile: brief(0.5, ['consolidation', 'restarts', 'poolRollouts']),
  },
  {
    name: 'rollback-missing',
    mistake: 'nodes of a cancelled command stay tainted',
    api: keepsDisruptedTaint,
    profile: brief(0.9, ['poolRollouts', 'restarts'], ['drought', 'neverBoots']),
  },
  {
    name: 'node-protection-ignored',
    mistake: 'the annotation `karpenter.sh/do-not-disrupt` of nodes is ignored',
    sees: { nodes: withoutAnnotation(annotations.doNotDisrupt) },
    profile: brief(0.8, ['poolRollouts', 'protectedNodes']),
  },
  {
    name: 'replaced-twice',
    mistake: 'the replacement of a node is created twice',
    api: replacesTwice,
    profile: brief(0.5, ['restarts', 'poolRollouts']),
  },
  {
    name: 'lease-outlived',
    mistake: 'a leader that lost its lease continues, and its requests are not blocked',
    goesOn: true,
    isUnfenced: true,
    replicas: 2,
    profile: brief(0.5, ['restarts'], ['pause']),
  },
  {
    name: 'lease-kept',
    mistake: 'a replica that shuts down does not release the lease',
    api: keepsLease,
    profile: brief(0.5, [], ['reconfigure']),
  },
  {
    name: 'option-ignored',
    mistake: 'after a restart the options for metrics have their defaults',
    settings: { metricsDetail: 'full', clusterStateObservability: true },
    profile: brief(1, [], ['reconfigure']),
  },
  {
    name: 'counters-reset',
    mistake: 'counters restart with every scrape',
    operator: countsAnew,
    profile: brief(0.5, []),
  },
  {
    name: 'series-kept',
    mistake: 'series of pods outlive them',
    operator: keepsSeriesOfPods,
    profile: brief(0.6, ['restarts']),
  },
  {
    name: 'scrapes-fail',
    mistake: 'one metric that cannot be computed fails the whole scrape',
    operator: failsScrapes,
    profile: brief(0.1, []),
  },
  {
    name: 'room-sold-twice',
    mistake: 'two pods of a CapacityBuffer have one place',
    decider: sellsRoomTwice,
    profile: brief(0.2, ['buffers']),
  },
  {
    name: 'kept-room-removed',
    mistake: 'nodes on which only room of CapacityBuffers is kept are removed as empty, and launched again',
    operator: overlooksKeptRoom,
    profile: brief(0.2, ['buffers']),
  },
  {
    name: 'buffer-pods-evicted',
    mistake: 'the pods that CapacityBuffers keep room for count as pods of their nodes',
    operator: takesRoomForPods,
    profile: brief(0.3, ['buffers', 'poolRollouts']),
  },
  {
    name: 'deleted-buffer-kept',
    mistake: 'room is kept for CapacityBuffers that are deleted',
    operator: keepsRoomOfDeleted,
    profile: brief(0.3, ['buffers']),
  },
  {
    name: 'starting-devices-overlooked',
    mistake: 'while the driver of a new node starts, another node is launched for its devices',
    decider: overlooksStartingDevices,
    profile: brief(0.3, ['devices']),
  },
  {
    name: 'devices-promised-twice',
    mistake: 'devices that claims have are promised to other pods',
    decider: promisesHeldDevices,
    profile: brief(0.5, ['devices']),
  },
  {
    name: 'drivers-not-awaited',
    mistake: 'a new node counts as initialized before the driver of its devices has published',
    api: awaitsNoDriver,
    profile: brief(0.3, ['devices']),
  },
  {
    name: 'gang-in-part',
    mistake: 'a gang counts as whole with one pod: nodes for a part of it are launched, and kept',
    sees: { podgroups: contentWithOne },
    profile: brief(0.5, ['gangs'], ['drought', 'cloudRefusal']),
  },
  {
    name: 'gang-strangers-lost',
    mistake: 'NodeClaims of a gang are given back although other pods run on their nodes',
    api: seesEveryNodeFree,
    profile: brief(0.8, ['gangs', 'bursts', 'restarts']),
  },
  {
    name: 'gang-drained',
    mistake: 'consolidation and drift take pods of a gang so that too few are left',
    operator: overlooksRunningGangs,
    profile: brief(0.6, ['gangs', 'consolidation', 'poolRollouts']),
  },
  {
    name: 'gang-annotation-lost',
    mistake:
      'the annotation `tenon.sh/group` of NodeClaims is lost: nobody knows which are launched together',
    sees: { nodeclaims: withoutAnnotation('tenon.sh/group') },
    profile: brief(0.5, ['gangs'], ['drought', 'cloudRefusal']),
  },
  {
    name: 'quota-off-by-one',
    mistake: 'CapacityQuotas are exceeded by one node',
    sees: { capacityquotas: quotaOffByOne },
    profile: brief(0.3, ['wanted', 'bursts', 'restarts']),
  },
  {
    name: 'quota-unreserved',
    mistake: 'CapacityQuotas do not count launches whose NodeClaims nobody sees yet',
    operator: reservesNothing,
    profile: brief(1.5, ['wanted', 'staticPools', 'bursts', 'restarts']),
  },
  {
    name: 'repair-brake-ignored',
    mistake: 'repair does not hold when many nodes fail together',
    operator: seesSingleFailures,
    profile: { ...brief(1, ['wanted', 'restarts']), nodes: 8 },
  },
  {
    name: 'repair-zones-overlooked',
    mistake: 'Cluster API: repair does not hold when many nodes of one zone fail together',
    operator: seesOneZone,
    profile: atClusterApi({ ...brief(1.5, ['wanted', 'restarts']), nodes: 28 }),
  },
  {
    name: 'repair-budget-ignored',
    mistake: 'more nodes are repaired at once than the annotation `tenon.sh/repair-budget` allows',
    sees: { nodepools: withAnnotation('tenon.sh/repair-budget', () => '100%') },
    profile: { ...brief(1, ['wanted', 'restarts']), nodes: 8 },
  },
  {
    name: 'repair-veto-ignored',
    mistake: 'the annotation `tenon.sh/do-not-repair` is ignored',
    sees: { nodes: withoutAnnotation('tenon.sh/do-not-repair') },
    profile: brief(1, ['wanted']),
  },
  {
    name: 'surge-skipped',
    mistake: 'pods of Deployments that surge are evicted at once',
    operator: evictsAtOnce,
    profile: brief(0.5, ['wanted', 'poolRollouts', 'manualDeletions']),
  },
  {
    name: 'surge-repeated',
    mistake: 'after a restart a Deployment is restarted again for the same drain',
    sees: { deployments: withoutRestarts, pods: withoutRestarts },
    profile: brief(0.5, ['wanted', 'poolRollouts', 'manualDeletions'], ['crash']),
  },
  {
    name: 'windows-in-utc',
    mistake: 'windows of pods are read in UTC',
    sees: { pods: withAnnotation('tenon.sh/disruption-windows', (text) => text.replace(/ [A-Z].*$/, '')) },
    profile: { ...brief(1, ['wanted', 'poolRollouts', 'restarts', 'manualDeletions']), nodes: 4 },
  },
  {
    name: 'time-zone-ignored',
    mistake: 'schedules of budgets are read in UTC',
    sees: { nodepools: withoutAnnotation('tenon.sh/time-zone') },
    profile: brief(1.5, ['wanted', 'poolRollouts', 'restarts']),
  },
  {
    name: 'expiry-by-force',
    mistake: 'soft expiration is ignored: expired nodes go at once, whatever the budgets',
    sees: { nodepools: withoutAnnotation('tenon.sh/expiration') },
    profile: brief(1.3, ['wanted', 'expiry']),
  },
  {
    name: 'expiry-too-early',
    mistake: 'jitter takes nine tenths of the age of nodes',
    sees: { nodepools: withAnnotation('tenon.sh/expiration-jitter', () => '90%') },
    profile: brief(1, ['wanted', 'expiry']),
  },
  {
    name: 'zones-forgotten',
    mistake: 'Cluster API: after a restart zones are disrupted side by side',
    operator: forgetsZones,
    profile: atClusterApi({ ...brief(1, ['wanted', 'poolRollouts'], ['crash']), nodes: 8 }),
  },
  {
    name: 'deleted-for-good',
    mistake: 'what a watch told deleted is never found to be there',
    api: forgetsForGood,
    profile: brief(0.5, ['restarts', 'bursts', 'poolRollouts'], ['falseDeletion']),
  },
  {
    name: 'operation-forgotten',
    mistake: 'an instance counts as made once reads show it, not once its operation has named it',
    cloud: forgetsWhatWasMade,
    profile: brief(0.5, ['restarts', 'bursts'], ['laggingCloud']),
  },
  {
    name: 'refusal-believed',
    mistake: 'what the cloud refused to make is not looked for',
    cloud: believesRefusals,
    profile: brief(0.5, ['restarts', 'bursts'], ['lyingCloud']),
  },
  {
    name: 'surplus-kept',
    mistake: 'a second instance of a claim is never deleted',
    cloud: keepsSurplus,
    profile: { ...brief(0.6, ['restarts', 'bursts', 'poolRollouts'], ['lyingCloud']), nodes: 6 },
  },
  {
    name: 'fresh-look-skipped',
    mistake: 'who takes a node away looks for its pods in the cache',
    ...skipsFreshLooks(),
    profile: { ...brief(0.6, ['restarts', 'bursts'], ['lateWatch']), nodes: 6 },
  },
  {
    name: 'identity-ignored',
    mistake: 'instances are deleted whatever cluster answers',
    operator: ignoresIdentity,
    profile: brief(0.8, ['bursts'], ['otherCluster']),
  },
  {
    name: 'scheduler-unheard',
    mistake: 'what the scheduler says of a node that was bought for a pod is not heard',
    sees: { pods: withoutRefusals },
    profile: brief(0.5, ['restarts', 'bursts'], ['stubbornScheduler']),
  },
  {
    name: 'twin-kept',
    mistake: 'the Node of a kubelet that was renamed is never removed',
    api: keepsTwins,
    profile: brief(0.4, ['restarts'], ['renamedKubelet']),
  },
  {
    name: 'twin-undrained',
    mistake: 'an instance with two Nodes ends under the pods of one of them',
    ...overlooksPodsOfTwins,
    profile: brief(0.6, ['restarts', 'poolRollouts', 'manualDeletions'], ['renamedKubelet']),
  },
  {
    name: 'kubelet-told-all',
    mistake: 'kubelets are told labels that they may not set',
    cloud: tellsKubeletsAll,
    profile: brief(0.3, [], ['kubeletLabels']),
  },
  {
    name: 'labels-left-out',
    mistake: 'labels that kubelets may not set are set by nobody',
    api: leavesLabelsOut,
    profile: brief(0.1, [], ['kubeletLabels']),
  },
  {
    name: 'stop-and-go-leader',
    mistake: 'a leader that lost its lease continues while it gets little CPU',
    goesOn: true,
    isUnfenced: true,
    replicas: 2,
    profile: brief(0.6, ['restarts'], ['starvation', 'pause']),
  },
  {
    name: 'adopts-by-label',
    mistake: 'Clever Cloud: a NodeGroup is adopted by the claim that its labels name',
    providerApi: adoptsByLabel,
    profile: atClever(brief(0.4, ['restarts', 'poolRollouts', 'bursts'], ['foreignGroup'])),
  },
  {
    name: 'refusals-forgotten',
    mistake: 'Clever Cloud: no flavor is avoided after a refusal',
    provider: forgetsRefusals,
    profile: atClever(brief(0.5, ['restarts', 'poolRollouts', 'bursts'], ['failedOperation'])),
  },
  {
    name: 'every-node-stamped',
    mistake: 'Clever Cloud: all nodes of a resized NodeGroup get its provider ID',
    providerApi: stampsEveryNode,
    profile: atClever(brief(0.4, ['restarts'], ['groupResized', 'ownAutoscaler'])),
  },
  {
    name: 'unconfirmed-sweep',
    mistake: 'Clever Cloud: NodeGroups are deleted because of an outdated list of claims',
    providerApi: deletesUnconfirmed,
    profile: atClever(brief(0.5, ['restarts'])),
  },
  {
    name: 'double-decrement',
    mistake: 'Cluster API: replicas are lowered twice for one Machine',
    providerApi: decrementsTwice,
    profile: atClusterApi(brief(0.5, ['restarts', 'bursts'])),
  },
  {
    name: 'double-binding',
    mistake: 'Cluster API: a recently bound Machine is seen as free',
    providerApi: seesNoFreshBinding,
    profile: atClusterApi(brief(0.4, ['restarts', 'bursts'])),
  },
  {
    name: 'replicas-kept',
    mistake: 'Cluster API: replicas that no claim needs are never removed',
    providerApi: forgetsWhatItAdded,
    profile: atClusterApi(brief(0.5, ['restarts', 'bursts'], ['instanceDeath', 'replicasEdited'])),
  },
  {
    name: 'any-deployment',
    mistake: 'Cluster API: MachineDeployments that are not members are scaled',
    providerApi: takesAnyDeployment,
    profile: atClusterApi(brief(0.2, ['restarts', 'bursts'])),
  },
]

/** @throws Error naming the known ones. */
export function plantedBug(name: string): PlantedBug {
  const found = plantedBugs.find((bug) => bug.name === name)
  if (found === undefined)
    throw new Error(`no planted bug ${name}; known are ${plantedBugs.map((bug) => bug.name).join(', ')}`)
  return found
}

/** A story in which the bug has an effect soon. */
export const storyOf = ({ name, profile }: PlantedBug, seed: number): Story => ({
  ...profile,
  seed,
  mutation: name,
})
